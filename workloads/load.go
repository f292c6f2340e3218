package workloads

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trbench/trbench/workloads/trace"
)

// Load makes the list of a workload that needs no file: gsm8k, alpaca, sharegpt or fixed:PROMPT,OUTPUT. Case is
// ignored. Errors are the caller's: an unknown name (with the nearest known one), a malformed one, options out of
// bounds.
func Load(name string, o Options) (*Set, error) {
	s, err := parseName(name)
	if err != nil {
		return nil, err
	}
	if err := o.valid(); err != nil {
		return nil, fmt.Errorf("workload %s: %w", s.name, err)
	}
	if o.KeepText {
		return nil, fmt.Errorf("workload %s: it has token counts and no text: wanted a dataset file", s.name)
	}
	if s.builtin == nil {
		return s.fixed(o)
	}
	t, err := s.builtin.read(o)
	if err != nil {
		return nil, err
	}
	rules, err := rulesFor(o, "seeded")
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", s.name, err)
	}
	set := newSet(s.name, s.builtin.source(o), rules)
	set.Notes = append(set.Notes, s.builtin.notes...)
	usable := set.sieve(t, rules, o)
	if len(usable) == 0 {
		return nil, fmt.Errorf("workload %s: %s", s.name, set.nothingUsable())
	}
	chosen, err := set.choose(usable, t.HasArrivals, rules, o)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", s.name, err)
	}
	set.take(chosen)
	return set, nil
}

// LoadFile makes the list from a dataset file. What is wrong with the file, or that the sampler lets nothing of it
// through, is a *DataError; other errors are wrong options.
//
// The file is read as a stream and only its numbers are kept. Texts, where asked for, are read in a second pass, those
// of the chosen requests alone; of what isn't a regular file (a pipe) the first pass keeps all texts.
func LoadFile(path string, o Options) (*Set, error) {
	if err := o.valid(); err != nil {
		return nil, err
	}
	read, err := o.reading()
	if err != nil {
		return nil, err
	}
	once := o.KeepText && !regular(path)
	if once {
		read.Keep = func(int) bool { return true }
	}
	t, err := trace.ReadFile(path, read)
	if err != nil {
		return nil, err
	}
	if o.KeepText && !t.Format.HasText() {
		return nil, fmt.Errorf("%s: a file of the form %s has token counts and no text to keep", path, t.Format)
	}
	rules, err := rulesFor(o, usual(t))
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	set := newSet(strings.TrimSuffix(base, filepath.Ext(base)), fmt.Sprintf("%s (%s)", base, t.Format), rules)
	set.Notes = append(set.Notes, t.Notes...)
	usable := set.sieve(t, rules, o)
	if len(usable) == 0 {
		return nil, &DataError{File: path, Msg: set.nothingUsable()}
	}
	chosen, err := set.choose(usable, t.HasArrivals, rules, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if o.KeepText && !once {
		if err := chosen.texts(path, read, t); err != nil {
			return nil, err
		}
	}
	set.take(chosen)
	return set, nil
}

// reading is how to read a file under these options.
func (o Options) reading() (trace.Options, error) {
	format, err := trace.ParseFormat(o.Format)
	if err != nil {
		return trace.Options{}, err
	}
	tokenizer, err := trace.ParseTokenizer(o.Tokenizer)
	if err != nil {
		return trace.Options{}, err
	}
	promptsOnly := false
	if o.Sampler != "" {
		rules, err := samplerNamed(o.Sampler)
		if err != nil {
			return trace.Options{}, err
		}
		promptsOnly = o.Output > 0 && !rules.twoTurns
	}
	return trace.Options{Format: format, Tokenizer: tokenizer, Counter: o.Counter, PromptsOnly: promptsOnly}, nil
}

// rulesFor is the sampler that the options name, or the usual one, under the options' bounds.
func rulesFor(o Options, usual string) (sampler, error) {
	name := o.Sampler
	if name == "" {
		name = usual
	}
	s, err := samplerNamed(name)
	return s.bounded(o), err
}

func newSet(name, source string, rules sampler) *Set {
	return &Set{Name: name, Source: source, Sampler: rules.name, Skipped: []Skip{}, Notes: []string{}}
}

// regular says that path is a plain file, which can be read twice.
func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// valid says which option is out of bounds.
func (o Options) valid() error {
	for _, b := range []struct {
		what  string
		value int
		most  int
	}{
		{"requests", o.N, MaxRequests},
		{"warm-up requests", o.Warmup, MaxRequests},
		{"longest prompt", o.MaxPrompt, trace.MaxTokens},
		{"most tokens of a request", o.MaxTotal, 2 * trace.MaxTokens},
		{"output tokens", o.Output, trace.MaxTokens},
	} {
		if b.value < 0 || b.value > b.most {
			return fmt.Errorf("%s: found %d, wanted 0 to %d", b.what, b.value, b.most)
		}
	}
	if o.Sampler != "" {
		if _, err := samplerNamed(o.Sampler); err != nil {
			return err
		}
	}
	_, err := trace.ParseTokenizer(o.Tokenizer)
	return err
}
