package route

import "embed"

// Source is the text of the algorithms, for those who count its lines.
//
//go:embed bild.go cascade.go deferral.go ensemble.go reasoning.go speccascade.go specdec.go stitch.go
var Source embed.FS
