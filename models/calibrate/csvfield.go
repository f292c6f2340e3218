package calibrate

import (
	"strconv"
	"strings"
)

// csvField quotes a name where CSV needs it.
func csvField(s string) string {
	if strings.ContainsAny(s, ",\"\r\n") || s != strings.TrimSpace(s) {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

func appendInt(p []byte, n int64) []byte { return strconv.AppendInt(p, n, 10) }
