package calibrate

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxRows bounds the rows of one log, so that it fits in memory. A longer log says nothing that its first part doesn't.
const maxRows = 4 << 20

// want is a column that a reader asks for, by its names. The first name found counts; two of them in one file are an
// error, since they may disagree.
type want struct {
	names    []string
	required bool
}

// cell is one value as the file has it.
type cell struct {
	text string
	form form
	name string // the column's, as the file spells it
}

// form is what a cell is.
type form uint8

const (
	absent form = iota // no such column, an empty CSV cell, or null
	plain              // a CSV cell: whatever its reader wants
	jsonNumber
	jsonString
	jsonOther // a truth value, an object or an array
)

func (c cell) String() string {
	switch c.form {
	case absent:
		return "nothing"
	case jsonNumber:
		return "the number " + c.text
	case jsonString:
		return "the string " + quoted(c.text)
	case jsonOther:
		return c.text
	}
	return quoted(c.text)
}

// rows reads a table, CSV with a header or JSON objects (JSON Lines, or one array of them), as the columns that were
// asked for. Columns may come in any order, and further ones don't matter.
type rows struct {
	name  string
	wants []want
	next  func() ([]cell, error) // io.EOF ends it; the cells are reused
	line  int                    // of the row last read, 1-based
	count int
}

// openRows reads the header of a table; name stands in errors. has says which wants the file has; of JSON, where each
// object may differ, the first object's.
func openRows(name string, in io.Reader, wants []want) (r *rows, has []bool, err error) {
	r = &rows{name: name, wants: wants}
	lines := &lineCounter{in: in}
	buffered := bufio.NewReaderSize(lines, 1<<16)
	if mark, err := buffered.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		lines.skipped, _ = buffered.Discard(3)
	}
	first, err := firstByte(buffered)
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil, r.fault("", "empty, wanted a table")
	case err != nil:
		return nil, nil, &DataError{File: name, Msg: fmt.Sprintf("can't be read: %v", err), Err: err}
	case first == '{' || first == '[':
		return r.openJSON(buffered, lines)
	default:
		return r.openCSV(buffered)
	}
}

// firstByte is the first byte that isn't blank. It consumes nothing, so that lines count from the file's first.
func firstByte(in *bufio.Reader) (byte, error) {
	for n := 1; ; n++ {
		ahead, err := in.Peek(n)
		if len(ahead) < n {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = errors.New("it begins with too many blanks")
			}
			return 0, err
		}
		if b := ahead[n-1]; !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b, nil
		}
	}
}

// read returns the next row's cells, by wants; io.EOF at the end.
func (r *rows) read() ([]cell, error) {
	if r.count == maxRows {
		return nil, r.fault("", "more than %d rows: cut the log", maxRows)
	}
	cells, err := r.next()
	if err == nil {
		r.count++
	}
	return cells, err
}

// fault is an error at the row last read.
func (r *rows) fault(column, format string, args ...any) *DataError {
	return &DataError{File: r.name, Line: r.line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

// place finds each want among a header's names: its column, or -1.
func (r *rows) place(header []string) ([]int, error) {
	at := make(map[string]int, len(header))
	for i, name := range header {
		p := plainName(name)
		if first, twice := at[p]; twice && p != "" {
			return nil, r.fault(name, "found it twice, as columns %d and %d, wanted it once", first+1, i+1)
		}
		at[p] = i
	}
	out := make([]int, len(r.wants))
	for i, w := range r.wants {
		out[i] = -1
		for _, name := range w.names {
			j, ok := at[name]
			switch {
			case ok && out[i] >= 0:
				return nil, r.fault(header[j], "says the same as column %q, wanted one of them", header[out[i]])
			case ok:
				out[i] = j
			}
		}
		if out[i] < 0 && w.required {
			return nil, r.missing(w, header)
		}
	}
	return out, nil
}

func (r *rows) missing(w want, header []string) error {
	return r.fault(w.names[0], "missing, wanted %s; found %s", strings.Join(w.names, " or "), listed(header))
}

// listed is names for an error message, the first dozen.
func listed(names []string) string {
	const most = 12
	var shown []string
	for _, n := range names[:min(len(names), most)] {
		shown = append(shown, quoted(n))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-most))
	}
	if len(shown) == 0 {
		return "none"
	}
	return strings.Join(shown, ", ")
}

// plainName is a column's name without case, and with one word break.
func plainName(s string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(s)))
}

func (r *rows) openCSV(in io.Reader) (*rows, []bool, error) {
	table := csv.NewReader(in)
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return nil, nil, r.csvError(err)
	}
	r.line, _ = table.FieldPos(0)
	names := slices.Clone(header)
	at, err := r.place(names)
	if err != nil {
		return nil, nil, err
	}
	has := make([]bool, len(at))
	for i := range at {
		has[i] = at[i] >= 0
	}
	cells := make([]cell, len(at))
	r.next = func() ([]cell, error) {
		record, err := table.Read()
		if err != nil {
			return nil, r.csvError(err)
		}
		r.line, _ = table.FieldPos(0)
		for i, j := range at {
			cells[i] = cell{name: r.wants[i].names[0]}
			if j < 0 {
				continue
			}
			cells[i].name = names[j]
			if value := strings.TrimSpace(record[j]); value != "" {
				cells[i].text, cells[i].form = value, plain
			}
		}
		return cells, nil
	}
	return r, has, nil
}

func (r *rows) csvError(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &parse):
		r.line = parse.Line
		e := r.fault("", "not a CSV row: %v", parse.Err)
		e.Err = err
		return e
	}
	return &DataError{File: r.name, Line: r.line, Msg: fmt.Sprintf("can't be read: %v", err), Err: err}
}

// lineCounter remembers where lines end, to tell the line of an offset.
type lineCounter struct {
	in      io.Reader
	skipped int // bytes of a byte order mark, which offsets don't count
	read    int64
	ends    []int64 // offsets of the line feeds not yet passed
	past    int     // line feeds passed
}

func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// at is the 1-based line of an offset. Offsets must not go back.
func (l *lineCounter) at(offset int64) int {
	offset += int64(l.skipped)
	i := 0
	for i < len(l.ends) && l.ends[i] < offset {
		i++
	}
	l.past += i
	l.ends = l.ends[i:]
	return l.past + 1
}

func (r *rows) openJSON(in io.Reader, lines *lineCounter) (*rows, []bool, error) {
	s := &objects{rows: r, dec: json.NewDecoder(in), lines: lines, which: map[string]int{},
		cells: make([]cell, len(r.wants))}
	s.dec.UseNumber()
	for i, w := range r.wants {
		for _, name := range w.names {
			s.which[name] = i
		}
	}
	// The first object is read ahead: it stands for the header.
	ahead, err := s.next()
	if errors.Is(err, io.EOF) {
		return nil, nil, r.fault("", "empty, wanted a table")
	}
	if err != nil {
		return nil, nil, err
	}
	has := make([]bool, len(ahead))
	for i, c := range ahead {
		has[i] = c.form != absent
	}
	r.next = func() ([]cell, error) {
		if ahead != nil {
			cells := ahead
			ahead = nil
			return cells, nil
		}
		return s.next()
	}
	return r, has, nil
}

// objects reads JSON objects, token by token.
type objects struct {
	*rows
	dec   *json.Decoder
	lines *lineCounter
	which map[string]int // want by plain name
	cells []cell
	array bool // the objects stand in one array
	begun bool
}

// token returns the next token and moves line to its place.
func (s *objects) token() (json.Token, error) {
	t, err := s.dec.Token()
	s.line = s.lines.at(s.dec.InputOffset())
	if err == nil || errors.Is(err, io.EOF) && s.begun && !s.array {
		return t, err
	}
	var syntax *json.SyntaxError
	var e *DataError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e = s.fault("", "truncated: the text ends inside an object or array")
	case errors.As(err, &syntax):
		e = s.fault("", "not JSON: %v", syntax)
	default:
		e = s.fault("", "can't be read: %v", err)
	}
	e.Err = err
	return nil, e
}

// next reads one object's cells. The text before it may be an array's opening bracket.
func (s *objects) next() ([]cell, error) {
	t, err := s.token()
	s.begun = true
	if err == nil && t == json.Delim('[') && s.count == 0 && !s.array {
		s.array = true
		t, err = s.token()
	}
	switch {
	case err != nil:
		return nil, err
	case t == json.Delim(']') && s.array:
		return nil, s.end()
	case t != json.Delim('{'):
		return nil, s.fault("", "found %s, wanted an object", describe(t))
	}
	line := s.line
	clear(s.cells)
	var names []string
	for {
		t, err := s.inside()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok { // the closing brace
			break
		}
		i, wanted := s.which[plainName(name)]
		value, err := s.value()
		if err != nil {
			return nil, err
		}
		if s.count == 0 {
			names = append(names, name)
		}
		if !wanted {
			continue
		}
		if before := s.cells[i].name; before != "" {
			s.line = line
			if before == name {
				return nil, s.fault(name, "found it twice in one object, wanted it once")
			}
			return nil, s.fault(name, "says the same as %q, wanted one of them", before)
		}
		value.name = name
		s.cells[i] = value
	}
	s.line = line
	for i, w := range s.wants {
		if s.cells[i].name != "" {
			continue
		}
		if w.required {
			if s.count == 0 {
				return nil, s.missing(w, names)
			}
			return nil, s.fault(w.names[0], "missing, wanted %s", strings.Join(w.names, " or "))
		}
		s.cells[i].name = w.names[0]
	}
	return s.cells, nil
}

// inside is token where the end of the text is no end.
func (s *objects) inside() (json.Token, error) {
	t, err := s.token()
	if errors.Is(err, io.EOF) {
		return nil, s.fault("", "truncated: the text ends inside an object")
	}
	return t, err
}

// value reads one value; of an object or array it keeps that it was one.
func (s *objects) value() (cell, error) {
	t, err := s.inside()
	if err != nil {
		return cell{}, err
	}
	switch v := t.(type) {
	case json.Number:
		return cell{text: v.String(), form: jsonNumber}, nil
	case string:
		return cell{text: v, form: jsonString}, nil
	case nil:
		return cell{}, nil
	case json.Delim:
		for depth := 1; depth > 0; {
			t, err := s.inside()
			if err != nil {
				return cell{}, err
			}
			if d, ok := t.(json.Delim); ok {
				if d == '{' || d == '[' {
					depth++
				} else {
					depth--
				}
			}
		}
	}
	return cell{text: describe(t), form: jsonOther}, nil
}

// end checks that nothing follows the array.
func (s *objects) end() error {
	s.array = false
	t, err := s.token()
	if err == nil {
		return s.fault("", "found %s behind the array, wanted nothing", describe(t))
	}
	return err
}

// describe says what a token is, as an error message puts it.
func describe(t json.Token) string {
	switch v := t.(type) {
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "an array", '}': "}", ']': "]"}[v]
	case string:
		return "the string " + quoted(v)
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}
