// Package replay predicts real runs of a vLLM server from their arrival trace, and sets what comes out beside what was
// measured. Nothing is fitted: a run's settings, the trace and the kernels' measured times are all that a prediction
// knows.
//
// Read settings.go (run.json), then folder.go (the other files), predict.go (one simulation), compare.go (real beside
// predicted, and each mechanism switched off) and plots.go.
package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trbench/trbench/models"
)

// Names of the files of a real run's folder.
const (
	SettingsFile   = "run.json"
	RequestsFile   = "requests.jsonl"
	TimeseriesFile = "timeseries.csv" // optional
)

// ErrSettings is the kind of settings that can't be simulated: a mistake in run.json's values, not in its form.
var ErrSettings = errors.New("settings")

// Settings are run.json: how the server was set. What is missing is vLLM's default; unknown keys are passed over.
type Settings struct {
	GPU         string `json:"gpu"`
	Model       string `json:"model"`
	TP          int    `json:"tp"` // GPUs that share each layer
	Engine      string `json:"engine"`
	Dtype       string `json:"dtype"`
	MaxSeqs     int    `json:"max_num_seqs"`
	TokenBudget int    `json:"token_budget"`
	BlockTokens int    `json:"block_size"`
	KVBlocks    *int   `json:"kv_blocks"` // null: never limiting
	Chunked     *bool  `json:"chunked_prefill"`
	Caching     *bool  `json:"prefix_caching"`
	Async       *bool  `json:"async_scheduling"`
	Trace       string `json:"trace"` // paths are relative to the folder
	Tables      string `json:"tables"`
	AllReduce   string `json:"allreduce"`

	card models.Card
}

// DataError is a file that can't be used: where it is, what was found and what was wanted.
type DataError struct {
	Path  string
	Line  int    // 1-based; 0 where the file as a whole is wrong
	Field string // "" where a line or the file as a whole is wrong
	Msg   string
	Err   error
}

func (e *DataError) Error() string {
	s := e.Path
	if e.Line > 0 {
		s += fmt.Sprintf(": line %d", e.Line)
	}
	if e.Field != "" {
		s += fmt.Sprintf(": field %q", e.Field)
	}
	return s + ": " + e.Msg
}

func (e *DataError) Unwrap() error { return e.Err }

// read reads a file whole.
func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		msg := err.Error()
		var p *os.PathError
		if errors.As(err, &p) {
			msg = p.Err.Error()
		}
		return nil, &DataError{Path: path, Msg: msg, Err: err}
	}
	return data, nil
}

// readSettings reads and checks the run.json of a folder.
func readSettings(dir string) (*Settings, error) {
	path := filepath.Join(dir, SettingsFile)
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	s := &Settings{TP: 1, Engine: "vllm", MaxSeqs: 256, TokenBudget: 2048, BlockTokens: 16}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, jsonError(path, data, 0, err)
	}
	for _, f := range []struct {
		field string
		value int
	}{{"tp", s.TP}, {"max_num_seqs", s.MaxSeqs}, {"token_budget", s.TokenBudget}, {"block_size", s.BlockTokens}} {
		if f.value < 1 {
			return nil, &DataError{Path: path, Field: f.field, Msg: fmt.Sprintf("%d: want at least 1", f.value)}
		}
	}
	if s.KVBlocks != nil && *s.KVBlocks < 2 {
		return nil, &DataError{Path: path, Field: "kv_blocks", Msg: fmt.Sprintf("%d: want at least 2, or null for no limit",
			*s.KVBlocks)}
	}
	for _, f := range []struct{ field, value string }{{"model", s.Model}, {"tables", s.Tables}} {
		if f.value == "" {
			return nil, &DataError{Path: path, Field: f.field, Msg: "missing"}
		}
	}
	name := s.Model[strings.LastIndexByte(s.Model, '/')+1:] // without the organisation
	if s.card, err = models.Lookup(name); err != nil {
		return nil, fmt.Errorf("%w: %s: field \"model\": %w", ErrSettings, path, err)
	}
	for _, p := range []*string{&s.Trace, &s.Tables, &s.AllReduce} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
	return s, nil
}

// jsonError says where in a file encoding/json met what it could not read; line counts from the file's first if it is 0.
func jsonError(path string, data []byte, line int, err error) error {
	e := &DataError{Path: path, Line: line, Msg: strings.TrimPrefix(err.Error(), "json: "), Err: err}
	var offset int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset, e.Field = kind.Offset, kind.Field
		e.Msg = fmt.Sprintf("a JSON %s, want %s", kind.Value, wanted(kind))
	}
	if line == 0 {
		e.Line = 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
	}
	return e
}

// wanted names what a field holds.
func wanted(e *json.UnmarshalTypeError) string {
	switch kind := e.Type.Kind().String(); {
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	case kind == "struct":
		return "an object"
	}
	return "a " + e.Type.Kind().String()
}

// on is a switch that is on unless the run says otherwise.
func on(b *bool) bool { return b == nil || *b }
