package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// scanner walks JSON token by token, so that of an entry only the string at hand is in memory.
type scanner struct {
	dec   *json.Decoder
	depth int        // objects and arrays open
	line  func() int // the line that the last token ends on
	keys  []string   // fields seen of the open objects, innermost last
}

func newScanner(r io.Reader, line func(dec *json.Decoder) int) *scanner {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return &scanner{dec: dec, line: func() int { return line(dec) }}
}

// next returns the next token: a json.Delim, string, json.Number, bool or nil. io.EOF is the end of the text outside
// any object or array; inside one the text is truncated, and that is a lost *DataError.
func (s *scanner) next() (json.Token, error) {
	t, err := s.dec.Token()
	if err != nil {
		return nil, s.broken(err)
	}
	if d, ok := t.(json.Delim); ok {
		if d == '{' || d == '[' {
			s.depth++
		} else {
			s.depth--
		}
	}
	return t, nil
}

func (s *scanner) broken(err error) error {
	var data *DataError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &data):
		return err
	case errors.Is(err, io.EOF) && s.depth == 0:
		return io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &syntax) && strings.Contains(syntax.Error(), "unexpected end"):
		data = fault(s.line(), "", "truncated: the text ends inside an object or array")
		err = io.ErrUnexpectedEOF
	case errors.As(err, &syntax):
		data = fault(s.line(), "", "not JSON: %v", syntax)
	default:
		data = fault(s.line(), "", "can't be read: %v", err)
	}
	data.Err, data.lost = err, true
	return data
}

// leave skips to where no more than depth objects and arrays are open.
func (s *scanner) leave(depth int) error {
	for s.depth > depth {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// skip passes over one value.
func (s *scanner) skip() error {
	depth := s.depth
	if _, err := s.next(); err != nil {
		return err
	}
	return s.leave(depth)
}

// members calls field for each member of an object whose brace is read; field takes the value. A name that comes twice
// is an error: JSON readers differ in which of the two they believe.
func (s *scanner) members(field func(name string) error) error {
	const few = 24
	base := len(s.keys)
	defer func() { s.keys = s.keys[:base] }()
	var many map[string]bool
	for {
		t, err := s.next()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return nil // the closing brace
		}
		twice := many[name]
		if many == nil {
			twice = slices.Contains(s.keys[base:], name)
		}
		if twice {
			return fault(s.line(), name, "found it twice in one object, wanted it once")
		}
		switch {
		case many != nil:
			many[name] = true
		case len(s.keys)-base < few:
			s.keys = append(s.keys, name)
		default:
			many = map[string]bool{name: true}
			for _, k := range s.keys[base:] {
				many[k] = true
			}
		}
		if err := field(name); err != nil {
			return err
		}
	}
}

// text takes a string.
func (s *scanner) text(name string) (string, error) {
	t, err := s.next()
	if err != nil {
		return "", err
	}
	v, ok := t.(string)
	if !ok {
		return "", fault(s.line(), name, "found %s, wanted a string", describe(t))
	}
	return v, nil
}

// number takes a number and returns it as written.
func (s *scanner) number(name string) (string, error) {
	t, err := s.next()
	if err != nil {
		return "", err
	}
	v, ok := t.(json.Number)
	if !ok {
		return "", fault(s.line(), name, "found %s, wanted a number", describe(t))
	}
	return v.String(), nil
}

// describe says what a token is, as an error message puts it.
func describe(t json.Token) string {
	switch v := t.(type) {
	case json.Delim:
		if v == '{' {
			return "an object"
		}
		return "an array"
	case string:
		return "the string " + shown(v)
	case json.Number:
		return "the number " + clip(v.String())
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}
