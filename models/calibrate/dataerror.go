package calibrate

import (
	"fmt"
	"strconv"
	"strings"
)

// DataError is bad input: where it is, what was found and what was wanted. A command that meets one exits 3.
type DataError struct {
	File   string // as the caller named it
	Line   int    // 1-based; 0 where a line means nothing
	Column string // the column's or field's name; empty where the line as a whole is wrong
	Msg    string // what was found, and what was wanted
	Err    error  // the cause, where there is one
}

func (e *DataError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Column != "" {
		fmt.Fprintf(&b, "column %q: ", e.Column)
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns the cause, so that errors.Is(err, fs.ErrNotExist) holds for a missing file.
func (e *DataError) Unwrap() error { return e.Err }

// quoted is a value as an error message shows it: its first 40 characters.
func quoted(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n == most {
			return strconv.Quote(s[:i] + "…")
		}
		n++
	}
	return strconv.Quote(s)
}
