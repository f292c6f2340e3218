package calibrate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Kind is what a log is of.
type Kind string

// The kinds of log.
const (
	Steps      Kind = "steps"
	Tokens     Kind = "tokens"
	Benchmarks Kind = "bench"
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{Steps, Tokens, Benchmarks} }

// Log is one log that was read: one of its fields is set.
type Log struct {
	Steps  *StepLog
	Tokens *TokenLog
	Bench  *Bench
}

// ReadFile reads a log of the kind, or of the kind that its first lines show if kind is "". Errors about the file are
// *DataError.
func ReadFile(path string, kind Kind) (*Log, error) {
	if kind == "" {
		var err error
		if kind, err = sniffFile(path); err != nil {
			return nil, err
		}
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var log Log
	switch kind {
	case Steps:
		log.Steps, err = ReadSteps(path, f)
	case Tokens:
		log.Tokens, err = ReadTokens(path, f)
	case Benchmarks:
		log.Bench, err = ReadBench(path, f)
	default:
		return nil, optionsErrorf("kind of log %q: want %s, %s or %s", kind, Steps, Tokens, Benchmarks)
	}
	if err != nil {
		return nil, err
	}
	return &log, nil
}

// Has says that the log names such a model.
func (l *Log) Has(model string) bool { return slices.Contains(l.models(), model) }

// Rename calls a model of the log by another name, such as that of a known model's card.
func (l *Log) Rename(old, to string) error {
	names := l.models()
	i := slices.Index(names, old)
	switch {
	case i < 0:
		return optionsErrorf("rename %s: the log has the models %s", quoted(old), listed(names))
	case strings.TrimSpace(to) == "" || slices.Contains(names, to):
		return optionsErrorf("rename %s to %s: want a name that the log doesn't have", quoted(old), quoted(to))
	}
	names[i] = to
	return nil
}

func (l *Log) models() []string {
	switch {
	case l.Steps != nil:
		return l.Steps.Models
	case l.Tokens != nil:
		return l.Tokens.Models
	}
	return nil
}

func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &DataError{File: path, Msg: cause(err), Err: err}
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, &DataError{File: path, Msg: "is a folder, wanted a file"}
	}
	return f, nil
}

// cause is what is wrong with a file, without its name, which stands before it.
func cause(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Sprintf("can't be opened: %v", path.Err)
	}
	return fmt.Sprintf("can't be opened: %v", err)
}

func sniffFile(path string) (Kind, error) {
	f, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return Sniff(path, f)
}

// Sniff tells the kind of a log by the names of its columns, or its first object's fields.
func Sniff(name string, in io.Reader) (Kind, error) {
	buffered := bufio.NewReader(in)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = buffered.Discard(3)
	}
	first, err := firstByte(buffered)
	switch {
	case errors.Is(err, io.EOF):
		return "", &DataError{File: name, Msg: "empty, wanted a log"}
	case err != nil:
		return "", &DataError{File: name, Msg: fmt.Sprintf("can't be read: %v", err), Err: err}
	}
	var names []string
	if first == '{' || first == '[' {
		names = fieldsOf(buffered)
	} else {
		head := bufio.NewReader(io.LimitReader(buffered, 1<<20))
		line, err := head.ReadString('\n')
		for err == nil && strings.TrimSpace(line) == "" {
			line, err = head.ReadString('\n')
		}
		for _, field := range strings.Split(line, ",") {
			names = append(names, strings.Trim(strings.TrimSpace(field), `"`))
		}
	}
	var plain []string
	for _, n := range names {
		plain = append(plain, plainName(n))
	}
	has := func(w want) bool {
		return slices.ContainsFunc(w.names, func(n string) bool { return slices.Contains(plain, n) })
	}
	switch {
	case has(want{names: []string{"ttfts", "mean_ttft_ms", "request_throughput", "output_throughput"}}):
		return Benchmarks, nil
	case has(stepWants[stepDuration]) || has(stepWants[stepBatch]) && has(stepWants[stepNew]):
		return Steps, nil
	case has(tokenWants[tokenPosition]):
		return Tokens, nil
	}
	return "", &DataError{File: name, Line: 1, Msg: fmt.Sprintf("can't tell what it is a log of: found %s; wanted the "+
		"columns of a step log (model, start_ns, duration_ns, batch, new_tokens, context_tokens), of a token log "+
		"(request, position, model), or the fields of a result of vllm bench serve", listed(names))}
}

// fieldsOf are the fields of the first object, as far as it can be read.
func fieldsOf(in io.Reader) []string {
	var names []string
	dec := json.NewDecoder(in)
	t, err := dec.Token()
	if err == nil && t == json.Delim('[') {
		t, err = dec.Token()
	}
	if err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			break
		}
		name, ok := t.(string)
		if !ok {
			break
		}
		names = append(names, name)
		if err := skipValue(dec); err != nil {
			break
		}
	}
	return names
}

// skipValue passes over one value without keeping it.
func skipValue(dec *json.Decoder) error {
	for depth := 0; ; {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
