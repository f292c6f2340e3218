package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// vocabulary builds the tables from model.vocab, added_tokens and model.merges. No id may reach most, so that a table
// by id is never larger than the file.
func (f *tokenizerFile) vocabulary(most int) (*vocabulary, error) {
	var b builder
	if err := readVocab(f.Model.Vocab, most, b.add); err != nil {
		return nil, fmt.Errorf("model.vocab: %w", err)
	}
	for i, a := range f.AddedTokens {
		if a.Content == "" {
			return nil, fmt.Errorf("added_tokens[%d]: content is empty", i)
		}
		if a.ID < 0 || int(a.ID) >= most {
			return nil, fmt.Errorf("added_tokens[%d]: id is %d, wanted 0 to %d", i, a.ID, most-1)
		}
		b.addAdded(a.ID, a.Content)
	}
	v, err := b.build()
	if err != nil {
		return nil, err
	}
	count := 0
	if err := readMerges(f.Model.Merges, func(_, _ []byte) error { count++; return nil }); err != nil {
		return nil, fmt.Errorf("model.merges: %w", err)
	}
	v.startMerges(count)
	var rank uint32
	var both []byte
	err = readMerges(f.Model.Merges, func(left, right []byte) error {
		var okLeft, okRight bool
		both, okLeft = appendBytes(both[:0], left)
		split := len(both)
		both, okRight = appendBytes(both, right)
		if !okLeft || !okRight {
			return fmt.Errorf("%q %q: %w", left, right, errNoToken)
		}
		if err := v.addMerge(rank, both, split); err != nil {
			return err
		}
		rank++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("model.merges[%d]: %w", rank, err)
	}
	return v, nil
}

// readVocab calls add for each member of {"TOKEN": ID, …}. The text is JSON that encoding/json has found well-formed;
// with 150,000 tokens and twice as many merges, walking it by hand is what makes opening quick.
func readVocab(text []byte, most int, add func(id int32, spelling []byte)) error {
	s := scanner{text: text}
	if !s.bracket('{') {
		return errors.New("is missing or no object")
	}
	for !s.bracket('}') {
		spelling, err := s.string()
		if err != nil {
			return err
		}
		number := s.scalar()
		id, err := strconv.ParseInt(string(number), 10, 32)
		if err != nil || id < 0 || int(id) >= most {
			return fmt.Errorf("%q: id is %.20s, wanted 0 to %d", spelling, number, most-1)
		}
		add(int32(id), spelling)
	}
	return nil
}

// readMerges calls add for each item of ["LEFT RIGHT", …] or, as newer files have it, [["LEFT", "RIGHT"], …].
func readMerges(text []byte, add func(left, right []byte) error) error {
	s := scanner{text: text}
	if !s.bracket('[') {
		return errors.New("is missing or no list")
	}
	for !s.bracket(']') {
		var left, right []byte
		var err error
		if s.bracket('[') {
			if left, err = s.string(); err != nil {
				return err
			}
			if s.bracket(']') {
				return fmt.Errorf("%q stands alone, wanted a pair", left)
			}
			if right, err = s.string(); err != nil {
				return err
			}
			if !s.bracket(']') {
				return fmt.Errorf("%q, %q and more, wanted a pair", left, right)
			}
		} else {
			both, err := s.string()
			if err != nil {
				return err
			}
			var ok bool
			if left, right, ok = bytes.Cut(both, []byte(" ")); !ok {
				return fmt.Errorf("%q is no pair, wanted a space between two tokens", both)
			}
		}
		if err := add(left, right); err != nil {
			return err
		}
	}
	return nil
}

// scanner walks well-formed JSON.
type scanner struct {
	text []byte
	at   int
}

// skip passes over whitespace and what stands between values.
func (s *scanner) skip() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			s.at++
		default:
			return
		}
	}
}

// bracket passes over a bracket, if it is next.
func (s *scanner) bracket(b byte) bool {
	s.skip()
	if s.at < len(s.text) && s.text[s.at] == b {
		s.at++
		return true
	}
	return false
}

// string reads a string: a part of the text, unless it holds an escape.
func (s *scanner) string() ([]byte, error) {
	s.skip()
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return nil, fmt.Errorf("is %.20s, wanted a string", s.text[min(s.at, len(s.text)):])
	}
	start, escaped := s.at, false
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			escaped = true
			s.at++
		}
	}
	s.at++
	quoted := s.text[start:s.at]
	if !escaped {
		return quoted[1 : len(quoted)-1], nil
	}
	var text string
	err := json.Unmarshal(quoted, &text)
	return []byte(text), err
}

// scalar reads a number, true, false or null.
func (s *scanner) scalar() []byte {
	s.skip()
	start := s.at
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n,]}", s.text[s.at]) < 0 {
		s.at++
	}
	return s.text[start:s.at]
}
