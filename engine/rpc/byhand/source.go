package byhand

import "embed"

// Source is the text of this package, for those who count its lines.
//
//go:embed answer.go automix.go bild.go byhand.go cascade.go citer.go co_llm.go entropy.go front.go frugalgpt.go
//go:embed glimprouter.go http.go logprobs.go me.go query.go r2r.go r_stitch.go scorer.go server.go spec_cascade.go
//go:embed specdec.go specreason.go
var Source embed.FS
