package replay

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/models/latency/kernels"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/sim/serve"
)

// Run is a folder of a real run: its settings, what came, and what happened.
type Run struct {
	Dir      string
	Settings *Settings
	Warnings []string

	requests []serve.Request
	real     []fidelity.Sample // by request
	tokS     results.Float     // output tokens a second
	running  []level           // real requests running over time; nil where nobody counted
	model    *kernels.Model
}

// level is a count that holds at a time.
type level struct{ second, count float64 }

// record is a line of requests.jsonl.
type record struct {
	ID        string   `json:"request_id"`
	Input     *int32   `json:"input_toks"`
	Output    *int32   `json:"output_toks"`
	Arrival   *float64 `json:"arrival_time"` // s, the client's clock
	Queued    *float64 `json:"queued_ts"`    // s, the server's clock: so are the others
	Scheduled *float64 `json:"scheduled_ts"`
	First     *float64 `json:"first_token_ts"`
	Last      *float64 `json:"last_token_ts"`
	line      int
}

// entry is a request of the trace.
type entry struct {
	Input   int32           `json:"input_toks"`
	Output  int32           `json:"output_toks"`
	Arrival *float64        `json:"arrival_time_ns"`
	IDs     json.RawMessage `json:"input_tok_ids"`
	line    int
}

// Open reads a run's folder, its trace and its tables.
func Open(dir string) (*Run, error) {
	settings, err := readSettings(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Settings: settings}
	arch := kernels.Arch{
		Layers: settings.card.Layers, Hidden: settings.card.Hidden, Vocab: settings.card.Vocab,
		QKNorm: settings.card.QKNorm, TP: settings.TP,
	}
	if r.model, r.Warnings, err = kernels.Load(settings.Tables, settings.AllReduce, arch); err != nil {
		return nil, err
	}
	if d := strings.ToLower(settings.Dtype); d != "" && d != "bf16" && d != "bfloat16" {
		r.warn("dtype %s: the tables are taken as they are, elements of all-reduces as those of bf16", settings.Dtype)
	}
	if !on(settings.Async) {
		r.warn("asynchronous scheduling is off: the host's time between two steps is in no table and left out, so that " +
			"steps are too short by it")
	}
	records, err := readRecords(filepath.Join(dir, RequestsFile))
	if err != nil {
		return nil, err
	}
	var trace []entry
	if settings.Trace == "" {
		r.warn("run.json names no trace: arrivals and lengths are those of %s, and no prompts share a prefix", RequestsFile)
	} else if trace, err = readTrace(settings.Trace); err != nil {
		return nil, err
	}
	if err := r.join(records, trace); err != nil {
		return nil, err
	}
	return r, r.readTimeseries()
}

func (r *Run) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// lines calls f with each line of JSON Lines that holds something.
func lines(data []byte, f func(line int, text []byte) error) error {
	for line := 1; len(data) > 0; line++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte("\n"))
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := f(line, text); err != nil {
			return err
		}
	}
	return nil
}

func readRecords(path string) ([]record, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	var records []record
	err = lines(data, func(line int, text []byte) error {
		rec := record{line: line}
		if err := json.Unmarshal(text, &rec); err != nil {
			return jsonError(path, text, line, err)
		}
		records = append(records, rec)
		return nil
	})
	if err == nil && len(records) == 0 {
		err = &DataError{Path: path, Msg: "no request"}
	}
	return records, err
}

// readTrace reads JSON Lines, or one JSON list, of requests.
func readTrace(path string) ([]entry, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	var trace []entry
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '[' {
		if err := json.Unmarshal(text, &trace); err != nil {
			return nil, jsonError(path, data, 0, err)
		}
		for i := range trace {
			trace[i].line = i + 1
		}
		return trace, nil
	}
	return trace, lines(data, func(line int, text []byte) error {
		e := entry{line: line}
		if err := json.Unmarshal(text, &e); err != nil {
			return jsonError(path, text, line, err)
		}
		trace = append(trace, e)
		return nil
	})
}

// entryOf is the trace's entry of a record: by the number at the end of its id, bench-17, or else by its place.
func entryOf(rec *record, place int, trace []entry) *entry {
	if i := strings.LastIndexByte(rec.ID, '-'); i >= 0 {
		if n, err := strconv.Atoi(rec.ID[i+1:]); err == nil && n >= 0 && n < len(trace) {
			return &trace[n]
		}
	}
	if place < len(trace) {
		return &trace[place]
	}
	return nil
}

// join makes requests and what happened to them of the two files.
//
// The client's clock and the server's differ by a constant. Since a request is queued as soon as the server is free to
// look, the least of queued - arrival is taken for it: the request that it belongs to came when the server was idle.
func (r *Run) join(records []record, trace []entry) error {
	path := filepath.Join(r.Dir, RequestsFile)
	arrivals := make([]float64, len(records)) // s
	offset, first := math.Inf(1), math.Inf(1)
	known := true
	for i := range records {
		known = known && records[i].Arrival != nil
	}
	shared := 0
	for i := range records {
		rec := &records[i]
		fail := func(field, format string, args ...any) error {
			return &DataError{Path: path, Line: rec.line, Field: field, Msg: fmt.Sprintf(format, args...)}
		}
		e := entryOf(rec, i, trace)
		if e == nil && len(trace) > 0 {
			return fail("request_id", "%q: the trace %s has %d requests", rec.ID, r.Settings.Trace, len(trace))
		}
		q, err := request(rec, e, fail)
		if err != nil {
			return err
		}
		switch {
		case known:
			arrivals[i] = *rec.Arrival
		case e != nil && e.Arrival != nil:
			arrivals[i] = *e.Arrival / 1e9
		default:
			return fail("arrival_time", "missing, and the trace has no arrival_time_ns")
		}
		if e != nil && len(e.IDs) > 0 {
			ids, err := tokens(e.IDs)
			if err != nil {
				return &DataError{Path: r.Settings.Trace, Line: e.line, Field: "input_tok_ids", Msg: err.Error()}
			}
			if len(ids) != int(q.Prompt) {
				return &DataError{Path: r.Settings.Trace, Line: e.line, Field: "input_tok_ids",
					Msg: fmt.Sprintf("%d token ids, want the %d of input_toks", len(ids), q.Prompt)}
			}
			q.Blocks = serve.Contents(ids, r.Settings.BlockTokens)
			shared++
		}
		queued := rec.Queued
		if queued == nil {
			queued = rec.Scheduled
		}
		if queued == nil {
			return fail("queued_ts", "missing, and so is scheduled_ts")
		}
		offset, first = min(offset, *queued-arrivals[i]), min(first, arrivals[i])
		r.requests = append(r.requests, q)
	}
	if on(r.Settings.Caching) && len(trace) > 0 && shared < len(records) {
		r.warn("%d of %d requests have no input_tok_ids in the trace: they share a prefix with nobody", len(records)-shared,
			len(records))
	}
	last, output, ended := math.Inf(-1), int64(0), 0
	for i := range records {
		rec := &records[i]
		r.requests[i].Arrival = clock.Instant(math.Round((arrivals[i] - first) * 1e9))
		var s fidelity.Sample
		if rec.First != nil && rec.Last != nil {
			at := arrivals[i] + offset
			ms := func(span float64) results.Float { return results.F(math.Round(span*1e9) / 1e6) } // whole ns
			s.TTFT, s.E2E = ms(*rec.First-at), ms(*rec.Last-at)
			if n := r.requests[i].Output; n > 1 {
				s.TPOT = ms((*rec.Last - *rec.First) / float64(n-1))
			}
			last, output = max(last, *rec.Last), output+int64(r.requests[i].Output)
			ended++
		}
		r.real = append(r.real, s)
	}
	if ended == 0 {
		return &DataError{Path: path, Field: "last_token_ts", Msg: "no request has one"}
	}
	if ended < len(records) {
		r.warn("%d of %d requests have no end: they are served, and not compared", len(records)-ended, len(records))
	}
	r.tokS = results.F(float64(output) / (last - first - offset))
	return nil
}

// request is a record's request.
func request(rec *record, e *entry, fail func(field, format string, args ...any) error) (serve.Request, error) {
	var q serve.Request
	if e != nil {
		q.Prompt, q.Output = e.Input, e.Output
		if rec.Input != nil && *rec.Input != e.Input {
			return q, fail("input_toks", "%d, the trace has %d in line %d", *rec.Input, e.Input, e.line)
		}
	}
	if rec.Input != nil {
		q.Prompt = *rec.Input
	}
	if rec.Output != nil {
		q.Output = *rec.Output // what was really written
	}
	if q.Prompt < 1 {
		return q, fail("input_toks", "%d: want at least 1", q.Prompt)
	}
	if q.Output < 1 {
		return q, fail("output_toks", "%d: want at least 1", q.Output)
	}
	if rec.First != nil && rec.Last != nil && *rec.Last < *rec.First {
		return q, fail("last_token_ts", "%g: before the first token at %g", *rec.Last, *rec.First)
	}
	return q, nil
}

// tokens reads a JSON list of token ids.
func tokens(text []byte) ([]int32, error) {
	if string(text) == "null" {
		return nil, nil
	}
	if len(text) == 0 || text[0] != '[' {
		return nil, fmt.Errorf("%q: want a list of token ids", text[:min(len(text), 40)])
	}
	ids := make([]int32, 0, bytes.Count(text, []byte(","))+1)
	id, digits := int64(0), 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			id = 10*id + int64(c-'0')
			if digits++; id > math.MaxInt32 {
				return nil, fmt.Errorf("a token id above %d", math.MaxInt32)
			}
		case c == ',' || c == ']':
			if digits > 0 {
				ids = append(ids, int32(id))
			}
			id, digits = 0, 0
		case c == '[' && i == 0, c == ' ', c == '\t':
		default:
			return nil, fmt.Errorf("%q: want a list of token ids", text[:min(len(text), 40)])
		}
	}
	return ids, nil
}

// readTimeseries reads how many requests ran, where somebody counted.
func (r *Run) readTimeseries() error {
	path := filepath.Join(r.Dir, TimeseriesFile)
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	in := csv.NewReader(bytes.NewReader(data))
	columns := []string{"t", "running"}
	var at []int // of the columns
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &DataError{Path: path, Msg: err.Error(), Err: err}
		}
		line, _ := in.FieldPos(0)
		if at == nil {
			for _, name := range columns {
				k := slices.IndexFunc(row, func(cell string) bool { return strings.TrimSpace(cell) == name })
				if k < 0 {
					return &DataError{Path: path, Line: line, Field: name, Msg: "no such column"}
				}
				at = append(at, k)
			}
			continue
		}
		var v [2]float64
		for k, name := range columns {
			cell := strings.TrimSpace(row[at[k]])
			if v[k], err = strconv.ParseFloat(cell, 64); err != nil || math.IsNaN(v[k]) || math.IsInf(v[k], 0) {
				return &DataError{Path: path, Line: line, Field: name, Msg: fmt.Sprintf("%q: want a number", cell)}
			}
		}
		r.running = append(r.running, level{v[0], v[1]})
	}
}
