package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
)

// Error is a table that can't be used: where it is and what was wanted.
type Error struct {
	Path  string
	Line  int    // 1-based; 0 where the file as a whole is wrong
	Field string // "" where a line as a whole is wrong
	Msg   string
	Err   error // the cause; nil for bad content
}

func (e *Error) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(": line %d", e.Line)
	}
	if e.Field != "" {
		s += fmt.Sprintf(": field %q", e.Field)
	}
	return s + ": " + e.Msg
}

func (e *Error) Unwrap() error { return e.Err }

// row is one line of a table: its cells by the wanted columns.
type row struct {
	path  string
	line  int
	names []string // of the wanted columns
	cells [][]byte
}

// readTable calls f with each line of a CSV file behind its header. Columns are found by name, those that nobody wants
// are passed over, and cells hold no quotes. The cells are valid during the call.
func readTable(path string, columns []string, f func(r *row) error) error {
	data, err := os.ReadFile(path)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			return &Error{Path: path, Msg: p.Err.Error(), Err: err}
		}
		return &Error{Path: path, Msg: err.Error(), Err: err}
	}
	r := row{path: path, names: columns, cells: make([][]byte, len(columns))}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var all [][]byte
	var order []int // of the wanted columns, in the file
	width := 0
	for rest := data; len(rest) > 0; {
		var text []byte
		text, rest, _ = bytes.Cut(rest, []byte("\n"))
		text = bytes.TrimSuffix(text, []byte("\r"))
		r.line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		all = split(all[:0], text)
		if order == nil {
			if order, err = find(path, r.line, columns, all); err != nil {
				return err
			}
			width = len(all)
			continue
		}
		if len(all) != width {
			return &Error{Path: path, Line: r.line, Msg: fmt.Sprintf("%d cells, want %d as in the header", len(all), width)}
		}
		for i, k := range order {
			r.cells[i] = all[k]
		}
		if err := f(&r); err != nil {
			return err
		}
	}
	if order == nil {
		return &Error{Path: path, Msg: "the file is empty, want a header and a line for each measurement"}
	}
	return nil
}

func split(to [][]byte, text []byte) [][]byte {
	for {
		i := bytes.IndexByte(text, ',')
		if i < 0 {
			return append(to, bytes.TrimSpace(text))
		}
		to = append(to, bytes.TrimSpace(text[:i]))
		text = text[i+1:]
	}
}

// find is where the wanted columns stand in a header.
func find(path string, line int, columns []string, header [][]byte) ([]int, error) {
	order := make([]int, len(columns))
	for i, name := range columns {
		order[i] = -1
		for k, h := range header {
			if string(h) == name {
				order[i] = k
			}
		}
		if order[i] < 0 {
			return nil, &Error{Path: path, Line: line, Field: name,
				Msg: fmt.Sprintf("no such column in the header %q", bytes.Join(header, []byte(",")))}
		}
	}
	return order, nil
}

func (r *row) fault(i int, format string, args ...any) error {
	return &Error{Path: r.path, Line: r.line, Field: r.names[i], Msg: fmt.Sprintf(format, args...)}
}

// number is cell i, at least least.
func (r *row) number(i int, least float64) (float64, error) {
	c := r.cells[i]
	x, ok := whole(c)
	if !ok {
		var err error
		x, err = strconv.ParseFloat(string(c), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, r.fault(i, "%q: want a number", c)
		}
	}
	if x < least {
		return 0, r.fault(i, "%s: want at least %g", c, least)
	}
	return x, nil
}

// whole reads a short number without a sign, a point or an exponent: most cells.
func whole(c []byte) (float64, bool) {
	if len(c) == 0 || len(c) > 15 {
		return 0, false
	}
	n := 0
	for _, d := range c {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int(d-'0')
	}
	return float64(n), true
}

// numbers fills in the cells of to, each at least least.
func (r *row) numbers(first int, least float64, to ...*float64) error {
	for i, p := range to {
		var err error
		if *p, err = r.number(first+i, least); err != nil {
			return err
		}
	}
	return nil
}
