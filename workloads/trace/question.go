package trace

import "encoding/json"

// Alpaca's instruction template, as its model was trained on (stanford_alpaca).
const (
	alpacaPlain = "Below is an instruction that describes a task. " +
		"Write a response that appropriately completes the request.\n\n" +
		"### Instruction:\n"
	alpacaInput = "Below is an instruction that describes a task, paired with an input that provides further " +
		"context. Write a response that appropriately completes the request.\n\n" +
		"### Instruction:\n"
	alpacaContext  = "\n\n### Input:\n"
	alpacaResponse = "\n\n### Response:"
)

func alpacaPrompt(instruction, input string) string {
	if input == "" {
		return alpacaPlain + instruction + alpacaResponse
	}
	return alpacaInput + instruction + alpacaContext + input + alpacaResponse
}

// texts takes the string fields named in wanted, by name; the rest of the object is passed over.
func texts(s *scanner, wanted ...string) (got map[string]string, fields []string, err error) {
	got = make(map[string]string, len(wanted))
	err = s.members(func(name string) error {
		fields = append(fields, name)
		for _, w := range wanted {
			if name == w {
				v, err := s.text(name)
				got[name] = v
				return err
			}
		}
		return s.skip()
	})
	return got, fields, err
}

// need is an error where a field of wanted isn't there.
func need(s *scanner, got map[string]string, fields []string, wanted ...string) error {
	for _, w := range wanted {
		if _, ok := got[w]; !ok {
			return missing(s, w, fields)
		}
	}
	return nil
}

// alpaca reads {"instruction", "input", "output"}; the input may be empty or missing, which has its own template.
func (r *reader) alpaca(s *scanner) (e Entry, skip string, err error) {
	got, fields, err := texts(s, "instruction", "input", "output")
	if err == nil {
		err = need(s, got, fields, "instruction", "output")
	}
	if err != nil {
		return e, "", err
	}
	r.prompt(&e, alpacaPrompt(got["instruction"], got["input"]))
	r.output(&e, got["output"])
	return e, "", nil
}

// gsm8k reads {"question", "answer"}: the bare question, no worked examples before it.
func (r *reader) gsm8k(s *scanner) (e Entry, skip string, err error) {
	got, fields, err := texts(s, "question", "answer")
	if err == nil {
		err = need(s, got, fields, "question", "answer")
	}
	if err != nil {
		return e, "", err
	}
	r.prompt(&e, got["question"])
	r.output(&e, got["answer"])
	return e, "", nil
}

// question reads a prompt from "question", "prompt" or the first of "turns"; answers, where there are any, aren't read.
func (r *reader) question(s *scanner) (e Entry, skip string, err error) {
	found := ""
	var fields []string
	err = s.members(func(name string) error {
		fields = append(fields, name)
		if name != "question" && name != "prompt" && name != "turns" {
			return s.skip()
		}
		if found != "" {
			return fault(s.line(), name, "found %s and %s, wanted one of them", found, name)
		}
		found = name
		text, err := questionText(s, name)
		if err == nil {
			r.prompt(&e, text)
		}
		return err
	})
	if err == nil && found == "" {
		err = missing(s, "question", fields)
	}
	return e, "", err
}

func questionText(s *scanner, name string) (string, error) {
	if name != "turns" {
		return s.text(name)
	}
	depth := s.depth
	t, err := s.next()
	if err != nil {
		return "", err
	}
	if t != json.Delim('[') {
		return "", fault(s.line(), name, "found %s, wanted an array of strings", describe(t))
	}
	if t, err = s.next(); err != nil {
		return "", err
	}
	if t == json.Delim(']') {
		return "", fault(s.line(), name, "found an empty array, wanted an array of strings")
	}
	text, ok := t.(string)
	if !ok {
		return "", fault(s.line(), "turns[0]", "found %s, wanted a string", describe(t))
	}
	return text, s.leave(depth)
}
