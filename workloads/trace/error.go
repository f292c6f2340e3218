package trace

import (
	"fmt"
	"strings"
)

// DataError is bad input: where it is, what was found and what was wanted. A command that meets one exits 3.
type DataError struct {
	File  string `json:"file"`  // as the caller named it
	Line  int    `json:"line"`  // 1-based; 0 where a line means nothing (the file itself, or no entry at all)
	Entry int    `json:"entry"` // 1-based number of the entry in the file; 0 outside an entry
	Field string `json:"field"` // the field's or column's name; empty where the entry as a whole is wrong
	Msg   string `json:"msg"`   // what was found, and what was wanted
	Err   error  `json:"-"`     // the cause, where there is one

	lost bool // reading can't go on behind this error
}

func (e *DataError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ": line %d", e.Line)
	}
	if e.Entry > 0 {
		fmt.Fprintf(&b, ": entry %d", e.Entry)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, ": field %q", e.Field)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns the cause, so that errors.Is(err, fs.ErrNotExist) holds for a missing file.
func (e *DataError) Unwrap() error { return e.Err }

// fault is a DataError that doesn't know its file and entry yet; the reader fills them in.
func fault(line int, field, format string, args ...any) *DataError {
	return &DataError{Line: line, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// shown is a value as an error message quotes it.
func shown(s string) string { return fmt.Sprintf("%q", clip(s)) }

// clip shortens a value to its first 40 characters.
func clip(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
