package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// parser reads the object whose brace is read: an entry, or why it is no request.
type parser func(s *scanner) (e Entry, skip string, err error)

// readJSON reads an array of objects, or one object a line.
func (r *reader) readJSON(br *bufio.Reader, src *source, start opening) error {
	in, err := r.tell(br, start)
	if err != nil {
		return r.bad(err)
	}
	parse := r.parser()
	if start.first == '[' {
		err = r.array(in, src, start, parse)
	} else {
		err = r.objectLines(in, start.line, parse)
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// parser is the reader of one object of the file's form.
func (r *reader) parser() parser {
	switch r.format {
	case ShareGPT:
		return r.shareGPT
	case Alpaca:
		return r.alpaca
	case GSM8K:
		return r.gsm8k
	case Questions:
		return r.question
	default:
		return r.numbers
	}
}

// tell settles the form by the fields of the first object, and returns the text with what was read of it put back.
func (r *reader) tell(in io.Reader, start opening) (io.Reader, error) {
	if r.opt.Format != Auto {
		r.format = r.opt.Format
		return in, nil
	}
	var read bytes.Buffer
	line := func(dec *json.Decoder) int {
		return start.line + 1 + bytes.Count(read.Bytes()[:dec.InputOffset()], []byte{'\n'})
	}
	s := newScanner(io.TeeReader(in, &read), line)
	fields, err := firstFields(s)
	if errors.Is(err, io.EOF) {
		return nil, fault(0, "", "found an empty array, wanted a dataset")
	}
	form, ok := objectForm(fields)
	if err == nil && !ok {
		err = fault(s.line(), "", "can't tell the form: found the fields %s; %s", list(fields), wantedObjects)
	}
	if err != nil {
		e := r.bad(err)
		e.Entry = 1
		return nil, e
	}
	r.format = form
	return io.MultiReader(&read, in), nil
}

// firstFields is the field names of the first object; io.EOF where an array has none.
func firstFields(s *scanner) ([]string, error) {
	t, err := s.next()
	if t == json.Delim('[') {
		t, err = s.next()
	}
	switch {
	case err != nil:
		return nil, err
	case t == json.Delim(']'):
		return nil, io.EOF
	case t != json.Delim('{'):
		return nil, fault(s.line(), "", "found %s, wanted an object: one entry", describe(t))
	}
	var fields []string
	err = s.members(func(name string) error {
		fields = append(fields, name)
		return s.skip()
	})
	return fields, err
}

// array reads the objects of one JSON array.
func (r *reader) array(in io.Reader, src *source, start opening, parse parser) error {
	s := newScanner(in, func(dec *json.Decoder) int { return src.lineAt(start.off + dec.InputOffset()) })
	if _, err := s.next(); err != nil { // the bracket
		return r.problem(err)
	}
	for {
		t, err := s.next()
		if err == nil && t == json.Delim(']') {
			break
		}
		r.begin()
		var e Entry
		var skip string
		if err == nil {
			e, skip, err = entry(s, t, parse)
		}
		if err == nil {
			r.add(e, skip)
			s.line() // lets go of the line feeds so far
			continue
		}
		if err := r.problem(err); err != nil {
			return err
		}
		if err := s.leave(1); err != nil {
			return r.problem(err)
		}
	}
	r.within = false
	t, err := s.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		err = lost(fault(s.line(), "", "found %s behind the array, wanted the end of the file", describe(t)))
	}
	return r.problem(err)
}

// objectLines reads one object a line.
func (r *reader) objectLines(in io.Reader, line int, parse parser) error {
	br, ok := in.(*bufio.Reader)
	if !ok {
		br = bufio.NewReaderSize(in, 64<<10)
	}
	var text []byte
	for {
		var err error
		text, err = nextLine(br, text[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			r.begin()
			return r.problem(err)
		}
		line++
		if len(bytes.TrimSpace(text)) > 0 {
			r.begin()
			if bad := r.objectLine(text, line, parse); bad != nil {
				bad.lost = false // the next line is a new beginning
				if err := r.problem(bad); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return nil
		}
	}
}

// nextLine appends the next line to buf; its end may be the end of the text, which is then reported with it.
func nextLine(br *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := br.ReadSlice('\n')
		buf = append(buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, err
		}
	}
}

func (r *reader) objectLine(text []byte, line int, parse parser) *DataError {
	s := newScanner(bytes.NewReader(text), func(*json.Decoder) int { return line })
	t, err := s.next()
	var e Entry
	var skip string
	if err == nil {
		e, skip, err = entry(s, t, parse)
	}
	if err == nil {
		switch t, err = s.next(); {
		case errors.Is(err, io.EOF):
			r.add(e, skip)
			return nil
		case err == nil:
			err = fault(line, "", "found %s behind the object, wanted one object a line", describe(t))
		}
	}
	bad := r.bad(err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		bad.Msg = "truncated: the line ends inside an object or array, wanted one object a line"
	}
	return bad
}

// entry reads one entry, whose first token is t.
func entry(s *scanner, t json.Token, parse parser) (e Entry, skip string, err error) {
	if t != json.Delim('{') {
		return e, "", fault(s.line(), "", "found %s, wanted an object", describe(t))
	}
	return parse(s)
}
