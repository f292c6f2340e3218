package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// tokenizerFile is tokenizer.json. Vocabulary and merges, which are nearly all of it, are read in vocabfile.go.
type tokenizerFile struct {
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    *component   `json:"normalizer"`
	PreTokenizer  *component   `json:"pre_tokenizer"`
	PostProcessor *component   `json:"post_processor"`
	Decoder       *component   `json:"decoder"`
	Model         struct {
		Type         string          `json:"type"`
		Dropout      float64         `json:"dropout"`
		Prefix       string          `json:"continuing_subword_prefix"`
		Suffix       string          `json:"end_of_word_suffix"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
	} `json:"model"`
}

// component is a normalizer, pre-tokenizer, post-processor or decoder: the fields of all kinds that are supported.
type component struct {
	Type           string      `json:"type"`
	Normalizers    []component `json:"normalizers"`   // of a Sequence
	PreTokenizers  []component `json:"pretokenizers"` // of a Sequence
	Processors     []component `json:"processors"`    // of a Sequence
	Decoders       []component `json:"decoders"`      // of a Sequence
	AddPrefixSpace bool        `json:"add_prefix_space"`
	UseRegex       *bool       `json:"use_regex"` // ByteLevel; absent means true
	Behavior       string      `json:"behavior"`  // Split
	Invert         bool        `json:"invert"`
	Pattern        struct {
		Regex string
	} `json:"pattern"`
	Single        []piece `json:"single"` // TemplateProcessing
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// piece is a special token or the text itself.
type piece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

// steps flattens a Sequence; none for an absent component.
func (c *component) steps(of func(*component) []component) []component {
	switch {
	case c == nil:
		return nil
	case c.Type == "Sequence":
		return of(c)
	}
	return []component{*c}
}

// tokenizer checks the file and builds what it describes. size is its length in bytes, which no id reaches: a token
// takes more than one.
func (f *tokenizerFile) tokenizer(size int) (*Tokenizer, error) {
	if err := f.checkModel(); err != nil {
		return nil, err
	}
	t := &Tokenizer{ignoreMerge: f.Model.IgnoreMerges, bos: -1, special: make(map[int32]bool), template: NoTemplate}
	var err error
	if t.nfc, err = f.normalizer(); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.pattern, err = f.pattern(); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if t.vocab, err = f.vocabulary(size); err != nil {
		return nil, err
	}
	t.setAdded(f.AddedTokens)
	if t.prefix, t.suffix, err = f.around(t); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	if len(t.prefix) > 0 {
		t.bos = t.prefix[0]
	}
	return t, nil
}

// checkModel refuses what would make other tokens than this package makes.
func (f *tokenizerFile) checkModel() error {
	m := &f.Model
	switch {
	case m.Type != "BPE":
		return fmt.Errorf("model.type is %q, wanted BPE", m.Type)
	case m.Dropout != 0:
		return fmt.Errorf("model.dropout is %v, wanted none", m.Dropout)
	case m.Prefix != "":
		return fmt.Errorf("model.continuing_subword_prefix is %q, wanted none", m.Prefix)
	case m.Suffix != "":
		return fmt.Errorf("model.end_of_word_suffix is %q, wanted none", m.Suffix)
	case m.ByteFallback:
		return errors.New("model.byte_fallback is true: only byte-level vocabularies are supported (Llama 3, Qwen, GPT-2)")
	}
	for _, d := range f.Decoder.steps(func(c *component) []component { return c.Decoders }) {
		if d.Type != "ByteLevel" {
			return fmt.Errorf("decoder: type is %q, wanted ByteLevel", d.Type)
		}
	}
	return nil
}

func (f *tokenizerFile) normalizer() (nfc bool, err error) {
	for _, n := range f.Normalizer.steps(func(c *component) []component { return c.Normalizers }) {
		if n.Type != "NFC" {
			return false, fmt.Errorf("type is %q, wanted NFC or none", n.Type)
		}
		nfc = true
	}
	return nfc, nil
}

// pattern reads the rule of words: Split by a known expression and then ByteLevel, or ByteLevel with its own.
func (f *tokenizerFile) pattern() (pattern, error) {
	steps := f.PreTokenizer.steps(func(c *component) []component { return c.PreTokenizers })
	p, split, byteLevel := patternWhole, false, false
	for i, s := range steps {
		switch {
		case s.Type == "Split" && i == 0:
			// All characters match, so that it makes no difference whether matches or what lies between them are kept.
			if s.Behavior != "Isolated" && !(s.Behavior == "Removed" && s.Invert) {
				return 0, fmt.Errorf("behavior is %q (invert %v), wanted Isolated", s.Behavior, s.Invert)
			}
			var ok bool
			if p, ok = knownPattern(s.Pattern.Regex); !ok {
				return 0, fmt.Errorf("unknown expression %q, wanted that of Llama 3, Qwen or GPT-2", s.Pattern.Regex)
			}
			split = true
		case s.Type == "ByteLevel" && !byteLevel:
			if s.AddPrefixSpace {
				return 0, errors.New("add_prefix_space is true, wanted false")
			}
			if s.UseRegex == nil || *s.UseRegex {
				if split {
					return 0, errors.New("both Split and ByteLevel have an expression, wanted one")
				}
				p = patternGPT2
			}
			byteLevel = true
		default:
			return 0, fmt.Errorf("step %d is %q, wanted Split and then ByteLevel", i, s.Type)
		}
	}
	if !byteLevel {
		return 0, errors.New("no ByteLevel: only byte-level vocabularies are supported (Llama 3, Qwen, GPT-2)")
	}
	return p, nil
}

func knownPattern(regex string) (pattern, bool) {
	switch regex {
	case regexGPT2:
		return patternGPT2, true
	case regexQwen:
		return patternQwen, true
	case regexLlama3:
		return patternLlama3, true
	}
	return 0, false
}

// setAdded sorts the added tokens by where they are looked for.
func (t *Tokenizer) setAdded(tokens []addedToken) {
	var raw, normalized []addedToken
	for _, a := range tokens {
		if a.Special {
			t.special[a.ID] = true
		}
		if a.Normalized {
			a.Content = t.normalize(a.Content)
			normalized = append(normalized, a)
		} else {
			raw = append(raw, a)
		}
	}
	t.added = addedTokens{newMatcher(raw), newMatcher(normalized)}
	special := func(a addedToken) bool { return a.Special }
	raw, normalized = slices.DeleteFunc(raw, special), slices.DeleteFunc(normalized, special)
	t.ordinary = addedTokens{newMatcher(raw), newMatcher(normalized)}
}

// around reads what Encode puts before and behind a text.
func (f *tokenizerFile) around(t *Tokenizer) (prefix, suffix []int32, err error) {
	for _, p := range f.PostProcessor.steps(func(c *component) []component { return c.Processors }) {
		switch p.Type {
		case "ByteLevel": // moves offsets, which nobody asks for here
		case "TemplateProcessing":
			if prefix != nil || suffix != nil {
				return nil, nil, errors.New("two TemplateProcessing steps, wanted one")
			}
			if prefix, suffix, err = p.around(t); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, fmt.Errorf("type is %q, wanted ByteLevel or TemplateProcessing", p.Type)
		}
	}
	return prefix, suffix, nil
}

func (c *component) around(t *Tokenizer) (prefix, suffix []int32, err error) {
	texts := 0
	for i, s := range c.Single {
		if s.Sequence != nil {
			texts++
			continue
		}
		if s.SpecialToken == nil {
			return nil, nil, fmt.Errorf("single[%d] is neither SpecialToken nor Sequence", i)
		}
		special, ok := c.SpecialTokens[s.SpecialToken.ID]
		if !ok {
			return nil, nil, fmt.Errorf("single[%d]: %q is not in special_tokens", i, s.SpecialToken.ID)
		}
		for _, id := range special.IDs {
			if len(t.vocab.bytes(id)) == 0 {
				return nil, nil, fmt.Errorf("special_tokens: %q has id %d, which no token has", s.SpecialToken.ID, id)
			}
		}
		if texts == 0 {
			prefix = append(prefix, special.IDs...)
		} else {
			suffix = append(suffix, special.IDs...)
		}
	}
	if texts != 1 {
		return nil, nil, fmt.Errorf("single holds the text %d times, wanted once", texts)
	}
	return prefix, suffix, nil
}
