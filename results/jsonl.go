package results

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/trbench/trbench/engine/clock"
)

// Label says which point of a run a request belongs to. All requests of a point share one.
type Label struct {
	Point       int    // index in Summary.Points
	System      string // as in Point
	Algorithm   string
	Workload    string
	Pair        string
	Concurrency int // 0, in an open loop, is null
}

// Record is one line of requests.jsonl.
type Record struct {
	Label   Label
	Request Request
}

// AppendJSON appends r as one line of requests.jsonl, newline included. The bytes depend on label and r alone. First
// and last token are null where there is no token, tpot_ms for a single one; error and text are left out when empty.
func AppendJSON(buf []byte, label *Label, r *Request) []byte {
	buf = append(buf, `{"point":`...)
	buf = strconv.AppendInt(buf, int64(label.Point), 10)
	buf = append(buf, `,"system":`...)
	buf = appendString(buf, label.System)
	buf = append(buf, `,"algorithm":`...)
	buf = appendString(buf, label.Algorithm)
	buf = append(buf, `,"workload":`...)
	buf = appendString(buf, label.Workload)
	buf = append(buf, `,"pair":`...)
	buf = appendString(buf, label.Pair)
	buf = append(buf, `,"concurrency":`...)
	if label.Concurrency == 0 {
		buf = append(buf, "null"...)
	} else {
		buf = strconv.AppendInt(buf, int64(label.Concurrency), 10)
	}
	buf = append(buf, `,"id":`...)
	buf = strconv.AppendInt(buf, int64(r.ID), 10)
	buf = append(buf, `,"status":"`...)
	buf = append(buf, r.Status.String()...)
	buf = append(buf, `","warmup":`...)
	buf = strconv.AppendBool(buf, r.Warmup)
	buf = append(buf, `,"prompt_tokens":`...)
	buf = strconv.AppendInt(buf, int64(r.PromptTokens), 10)
	buf = append(buf, `,"output_tokens":`...)
	buf = strconv.AppendInt(buf, int64(r.OutputTokens), 10)
	buf = append(buf, `,"large_tokens":`...)
	buf = strconv.AppendInt(buf, int64(r.LargeTokens), 10)
	buf = append(buf, `,"hops":`...)
	buf = strconv.AppendInt(buf, int64(r.Hops), 10)
	buf = append(buf, `,"agreement":`...)
	buf = appendNullable(buf, r.Agreement)
	buf = append(buf, `,"nll_nats_per_token":`...)
	buf = appendNullable(buf, r.NLL)
	buf = append(buf, `,"arrival_ns":`...)
	buf = strconv.AppendInt(buf, int64(r.Arrival), 10)
	buf = append(buf, `,"sent_ns":`...)
	buf = strconv.AppendInt(buf, int64(r.Sent), 10)
	buf = appendTimes(buf, r)
	if r.Error != "" {
		buf = append(buf, `,"error":`...)
		buf = appendString(buf, r.Error)
	}
	if r.Text != "" {
		buf = append(buf, `,"text":`...)
		buf = appendString(buf, r.Text)
	}
	return append(buf, "}\n"...)
}

// appendTimes appends what exists from the first token on, and the latencies that follow from it.
func appendTimes(buf []byte, r *Request) []byte {
	if r.OutputTokens <= 0 {
		return append(buf, `,"first_token_ns":null,"last_token_ns":null`+
			`,"ttft_ms":null,"tpot_ms":null,"itl_max_ns":null,"e2e_ms":null`...)
	}
	buf = append(buf, `,"first_token_ns":`...)
	buf = strconv.AppendInt(buf, int64(r.First), 10)
	buf = append(buf, `,"last_token_ns":`...)
	buf = strconv.AppendInt(buf, int64(r.Last), 10)
	buf = append(buf, `,"ttft_ms":`...)
	buf = appendMillis(buf, r.First.Sub(r.Arrival))
	if tpot, ok := r.TPOT(); ok {
		buf = append(buf, `,"tpot_ms":`...)
		buf = appendFloat(buf, tpot)
		buf = append(buf, `,"itl_max_ns":`...)
		buf = strconv.AppendInt(buf, int64(r.MaxITL), 10)
	} else {
		buf = append(buf, `,"tpot_ms":null,"itl_max_ns":null`...)
	}
	buf = append(buf, `,"e2e_ms":`...)
	return appendMillis(buf, r.Last.Sub(r.Arrival))
}

// recordLine is a line as decoded: the latencies, which follow from other fields, are not read back.
type recordLine struct {
	Point        *int           `json:"point"`
	System       string         `json:"system"`
	Algorithm    string         `json:"algorithm"`
	Workload     string         `json:"workload"`
	Pair         string         `json:"pair"`
	Concurrency  int            `json:"concurrency"`
	ID           *int32         `json:"id"`
	Status       string         `json:"status"`
	Warmup       bool           `json:"warmup"`
	PromptTokens int32          `json:"prompt_tokens"`
	OutputTokens int32          `json:"output_tokens"`
	LargeTokens  int32          `json:"large_tokens"`
	Hops         int32          `json:"hops"`
	Agreement    Float          `json:"agreement"`
	NLL          Float          `json:"nll_nats_per_token"`
	Arrival      *clock.Instant `json:"arrival_ns"`
	Sent         clock.Instant  `json:"sent_ns"`
	First        *clock.Instant `json:"first_token_ns"`
	Last         *clock.Instant `json:"last_token_ns"`
	MaxITL       time.Duration  `json:"itl_max_ns"`
	Error        string         `json:"error"`
	Text         string         `json:"text"`
}

// MaxLine bounds a line of requests.jsonl, in bytes: a long output text with every byte escaped.
const MaxLine = 16 << 20

// ReadRequests reads the lines of a requests.jsonl. name stands for the input in errors, which say name, line, field,
// what was found and what was wanted. The sequence ends after the first error. Unknown keys are passed over.
func ReadRequests(name string, r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 1<<16), MaxLine)
		n := 0
		for lines.Scan() {
			n++
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			record, err := decodeRecord(lines.Bytes())
			if err != nil {
				yield(Record{}, fmt.Errorf("%s:%d: %w", name, n, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Record{}, fmt.Errorf("%s:%d: line is longer than %d bytes", name, n+1, MaxLine))
		case err != nil:
			yield(Record{}, fmt.Errorf("%s:%d: %w", name, n+1, err))
		}
	}
}

// decodeRecord reads one line and holds it against Request's invariant.
func decodeRecord(line []byte) (Record, error) {
	var l recordLine
	if err := json.Unmarshal(line, &l); err != nil {
		return Record{}, describeJSON(err)
	}
	switch {
	case l.Point == nil:
		return Record{}, errors.New("field point: missing: want the index of a point")
	case l.ID == nil:
		return Record{}, errors.New("field id: missing: want the request's number")
	case l.Arrival == nil:
		return Record{}, errors.New("field arrival_ns: missing: want the scheduled arrival")
	case *l.Arrival < 0:
		return Record{}, fmt.Errorf("field arrival_ns: %d: want 0 or more", int64(*l.Arrival))
	case *l.Point < 0:
		return Record{}, fmt.Errorf("field point: %d: want 0 or more", *l.Point)
	case l.OutputTokens < 0:
		return Record{}, fmt.Errorf("field output_tokens: %d: want 0 or more", l.OutputTokens)
	}
	status, err := ParseStatus(l.Status)
	if err != nil {
		return Record{}, fmt.Errorf("field status: %w", err)
	}
	record := Record{
		Label: Label{
			Point: *l.Point, System: l.System, Algorithm: l.Algorithm, Workload: l.Workload, Pair: l.Pair,
			Concurrency: l.Concurrency,
		},
		Request: Request{
			ID: *l.ID, Arrival: *l.Arrival, Sent: l.Sent,
			PromptTokens: l.PromptTokens, OutputTokens: l.OutputTokens, LargeTokens: l.LargeTokens, Hops: l.Hops,
			Agreement: l.Agreement, NLL: l.NLL, Status: status, Warmup: l.Warmup, Error: l.Error, Text: l.Text,
		},
	}
	if l.OutputTokens == 0 {
		return record, nil
	}
	r := &record.Request
	switch {
	case l.First == nil:
		return Record{}, fmt.Errorf("field first_token_ns: null with %d output tokens", l.OutputTokens)
	case l.Last == nil:
		return Record{}, fmt.Errorf("field last_token_ns: null with %d output tokens", l.OutputTokens)
	case *l.First < r.Arrival:
		return Record{}, fmt.Errorf("field first_token_ns: %d: want arrival_ns %d or later",
			int64(*l.First), int64(r.Arrival))
	case *l.Last < *l.First:
		return Record{}, fmt.Errorf("field last_token_ns: %d: want first_token_ns %d or later",
			int64(*l.Last), int64(*l.First))
	}
	r.First, r.Last = *l.First, *l.Last
	if r.OutputTokens > 1 {
		r.MaxITL = l.MaxITL
	}
	return record, nil
}

// describeJSON rewords an error of encoding/json so that it names the field, what was found and what was wanted.
func describeJSON(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) && typed.Field == "" {
		return fmt.Errorf("found %s, want an object", typed.Value)
	}
	if typed != nil {
		return fmt.Errorf("field %s: found %s, want %s", typed.Field, typed.Value, typed.Type)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("column %d: not JSON: %w", syntax.Offset, err)
	}
	return err
}
