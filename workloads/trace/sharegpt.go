package trace

import (
	"encoding/json"
	"errors"
	"strings"
)

// oneTurn is why a conversation without an answer is no request.
const oneTurn = "fewer than 2 turns"

// shareGPT reads {"conversations": [{"from": …, "value": …}, …]}. By the rules that vLLM and SGLang share, turn 0 is
// the prompt and turn 1 the output, whatever their roles; later turns are passed over unread, and a conversation of
// fewer than two turns is skipped. Conversations, or a turn, given as JSON inside a string are decoded. "conversation",
// "role" and "content" are taken for "conversations", "from" and "value".
func (r *reader) shareGPT(s *scanner) (e Entry, skip string, err error) {
	turns := -1
	var fields []string
	err = s.members(func(name string) error {
		fields = append(fields, name)
		if name != "conversations" && name != "conversation" {
			return s.skip()
		}
		if turns >= 0 {
			return fault(s.line(), name, "found conversations and conversation, wanted one of them")
		}
		var err error
		turns, err = r.conversation(s, name, &e)
		return err
	})
	switch {
	case err != nil:
		return e, "", err
	case turns < 0:
		return e, "", missing(s, "conversations", fields)
	case turns == 0, turns == 1 && !r.opt.PromptsOnly:
		return e, oneTurn, nil
	}
	if r.first == model {
		r.answerFirst++
	}
	if r.nested {
		r.decoded++
	}
	return e, "", nil
}

// conversation reads the turns, and returns how many there are.
func (r *reader) conversation(s *scanner, name string, e *Entry) (turns int, err error) {
	t, err := s.next()
	if err != nil {
		return 0, err
	}
	if text, ok := t.(string); ok {
		inner := newScanner(strings.NewReader(text), func(*json.Decoder) int { return s.line() })
		t, err := inner.next()
		if err != nil || t != json.Delim('[') {
			return 0, fault(s.line(), name, "found the string %s, wanted an array of turns", shown(text))
		}
		if turns, err = r.turns(inner, name, e); err != nil {
			return 0, inside(err, name)
		}
		r.nested = true
		return turns, nil
	}
	if t != json.Delim('[') {
		return 0, fault(s.line(), name, "found %s, wanted an array of turns", describe(t))
	}
	return r.turns(s, name, e)
}

// inside marks an error within decoded text as one that reading can go on behind.
func inside(err error, name string) error {
	var e *DataError
	if !errors.As(err, &e) {
		return fault(0, name, "%v", err)
	}
	e.lost = false
	if e.Field == "" {
		e.Field = name
	}
	return e
}

// turns reads an array whose bracket is read.
func (r *reader) turns(s *scanner, name string, e *Entry) (n int, err error) {
	for ; ; n++ {
		t, err := s.next()
		switch {
		case err != nil:
			return n, err
		case t == json.Delim(']'):
			return n, nil
		case n >= 2:
			if d, ok := t.(json.Delim); ok && (d == '{' || d == '[') {
				err = s.leave(s.depth - 1)
			}
		default:
			err = r.turn(s, t, name, n, e)
		}
		if err != nil {
			return n, err
		}
	}
}

// turn reads turn n, whose first token is t.
func (r *reader) turn(s *scanner, t json.Token, name string, n int, e *Entry) error {
	field := name + "[0].value"
	if n == 1 {
		field = name + "[1].value"
	}
	if text, ok := t.(string); ok {
		inner := newScanner(strings.NewReader(text), func(*json.Decoder) int { return s.line() })
		t, err := inner.next()
		if err != nil || t != json.Delim('{') {
			return fault(s.line(), field, "found the string %s, wanted a turn with from and value", shown(text))
		}
		if err := r.turnObject(inner, field, n, e); err != nil {
			return inside(err, field)
		}
		r.nested = true
		return nil
	}
	if t != json.Delim('{') {
		return fault(s.line(), field, "found %s, wanted a turn with from and value", describe(t))
	}
	return r.turnObject(s, field, n, e)
}

func (r *reader) turnObject(s *scanner, field string, n int, e *Entry) error {
	found := false
	var fields []string
	err := s.members(func(name string) error {
		fields = append(fields, name)
		switch name {
		case "value", "content":
			if found {
				return fault(s.line(), field, "found value and content, wanted one of them")
			}
			found = true
			text, err := s.text(field)
			if err != nil {
				return err
			}
			if n == 0 {
				r.prompt(e, text)
			} else {
				r.output(e, text)
			}
			return nil
		case "from", "role":
			return r.speaker(s, n)
		default:
			return s.skip()
		}
	})
	if err == nil && !found {
		err = missing(s, field, fields)
	}
	return err
}

// role is whose turn it is.
type role uint8

const (
	nobody role = iota
	model
)

// speaker notes whether the model has the first turn; anything may stand there.
func (r *reader) speaker(s *scanner, n int) error {
	depth := s.depth
	t, err := s.next()
	if err != nil {
		return err
	}
	if v, ok := t.(string); ok && n == 0 {
		switch strings.ToLower(v) {
		case "gpt", "assistant", "chatgpt", "bing", "bard", "model":
			r.first = model
		}
	}
	return s.leave(depth)
}
