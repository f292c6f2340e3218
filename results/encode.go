package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// This file writes summary.json. It is written by hand and read by encoding/json: so zero values can be null, floats
// keep one format, and a distribution takes one line, which keeps a diff of two summaries readable.

// WriteSummary writes s as summary.json: indented, a newline at the end, the same bytes for the same value.
func WriteSummary(w io.Writer, s *Summary) error {
	_, err := w.Write(AppendSummary(nil, s))
	return err
}

// AppendSummary appends s as WriteSummary writes it.
func AppendSummary(buf []byte, s *Summary) []byte {
	e := encoder{buf: buf}
	e.summary(s)
	return append(e.buf, '\n')
}

// MarshalJSON writes what WriteSummary does.
func (s Summary) MarshalJSON() ([]byte, error) { return AppendSummary(nil, &s), nil }

// MarshalJSON writes p as it stands in summary.json.
func (p Point) MarshalJSON() ([]byte, error) {
	var e encoder
	e.point(&p)
	return e.buf, nil
}

// MarshalJSON writes c as it stands in summary.json.
func (c Comparison) MarshalJSON() ([]byte, error) {
	var e encoder
	e.comparison(&c)
	return e.buf, nil
}

// MarshalJSON writes c as it stands in summary.json.
func (c Claim) MarshalJSON() ([]byte, error) {
	var e encoder
	e.claim(&c)
	return e.buf, nil
}

// MarshalJSON writes the mean and the percentiles, {"mean":1,"p50":1}.
func (d Dist) MarshalJSON() ([]byte, error) {
	var e encoder
	e.distValue(&d)
	return e.buf, nil
}

// encoder writes objects, one key a line, and keeps the commas and the indent.
type encoder struct {
	buf   []byte
	depth int
	some  bool // the open object or list has an element
}

func (e *encoder) open(bracket byte) {
	e.buf = append(e.buf, bracket)
	e.depth++
	e.some = false
}

func (e *encoder) close(bracket byte) {
	e.depth--
	if e.some {
		e.newline()
	}
	e.buf = append(e.buf, bracket)
	e.some = true
}

func (e *encoder) newline() {
	e.buf = append(e.buf, '\n')
	for range e.depth {
		e.buf = append(e.buf, ' ', ' ')
	}
}

// next starts an element of the open object or list.
func (e *encoder) next() {
	if e.some {
		e.buf = append(e.buf, ',')
	}
	e.some = true
	e.newline()
}

func (e *encoder) key(k string) {
	e.next()
	e.buf = appendString(e.buf, k)
	e.buf = append(e.buf, ": "...)
}

func (e *encoder) null() { e.buf = append(e.buf, "null"...) }

func (e *encoder) text(k, v string) {
	e.key(k)
	e.buf = appendString(e.buf, v)
}

// name writes a string that is null when empty.
func (e *encoder) name(k, v string) {
	if v != "" {
		e.text(k, v)
		return
	}
	e.key(k)
	e.null()
}

func (e *encoder) count(k string, v int64) {
	e.key(k)
	e.buf = strconv.AppendInt(e.buf, v, 10)
}

// positive writes a count that is null when zero.
func (e *encoder) positive(k string, v int) {
	if v != 0 {
		e.count(k, int64(v))
		return
	}
	e.key(k)
	e.null()
}

func (e *encoder) float(k string, v Float) {
	e.key(k)
	e.buf = appendNullable(e.buf, v)
}

// row writes a list in one line; a nil list is null.
func row[T any](e *encoder, k string, list []T, appendItem func([]byte, T) []byte) {
	e.key(k)
	if list == nil {
		e.null()
		return
	}
	e.buf = append(e.buf, '[')
	for i, item := range list {
		if i > 0 {
			e.buf = append(e.buf, ", "...)
		}
		e.buf = appendItem(e.buf, item)
	}
	e.buf = append(e.buf, ']')
}

// rows writes a list of objects, one below the other; a nil list is empty.
func rows[T any](e *encoder, k string, list []T, write func(*T)) {
	e.key(k)
	e.open('[')
	for i := range list {
		e.next()
		write(&list[i])
	}
	e.close(']')
}

func (e *encoder) dist(k string, d *Dist) {
	e.key(k)
	e.distValue(d)
}

func (e *encoder) distValue(d *Dist) {
	if d == nil {
		e.null()
		return
	}
	e.buf = append(e.buf, `{"mean": `...)
	e.buf = appendNullable(e.buf, F(d.Mean))
	for _, q := range d.Quantiles {
		e.buf = append(e.buf, `, "`...)
		e.buf = append(e.buf, q.Key()...)
		e.buf = append(e.buf, `": `...)
		e.buf = appendNullable(e.buf, F(q.Value))
	}
	e.buf = append(e.buf, '}')
}

// Key is the percentile's key in JSON and CSV: p50, p99.9.
func (q Quantile) Key() string { return "p" + strconv.FormatFloat(q.P, 'f', -1, 64) }

func (e *encoder) axes(k string, axes Axes) {
	e.key(k)
	e.buf = appendAxes(e.buf, axes)
}

func appendAxes(buf []byte, axes Axes) []byte {
	if len(axes) == 0 {
		return append(buf, "null"...)
	}
	buf = append(buf, '{')
	for i, a := range axes {
		if i > 0 {
			buf = append(buf, ", "...)
		}
		buf = appendString(buf, a.Key)
		buf = append(buf, ": "...)
		buf = appendString(buf, a.Value)
	}
	return append(buf, '}')
}

func (e *encoder) summary(s *Summary) {
	e.open('{')
	e.text("schema", SummarySchema)
	e.text("run", s.Run)
	e.text("clock", s.Clock)
	e.key("seed")
	e.buf = strconv.AppendUint(e.buf, s.Seed, 10)
	rows(e, "points", s.Points, e.point)
	rows(e, "comparisons", s.Comparisons, e.comparison)
	rows(e, "claims", s.Claims, e.claim)
	rows(e, "warnings", s.Warnings, func(w *string) { e.buf = appendString(e.buf, *w) })
	e.close('}')
}

func (e *encoder) point(p *Point) {
	e.open('{')
	e.text("system", p.System)
	e.name("algorithm", p.Algorithm)
	e.name("workload", p.Workload)
	e.name("pair", p.Pair)
	e.positive("concurrency", p.Concurrency)
	row(e, "threshold", p.Threshold, func(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) })
	e.count("requests", int64(p.Requests))
	e.count("failed", int64(p.Failed))
	e.count("output_tokens", p.OutputTokens)
	e.float("duration_s", p.DurationS)
	e.float("output_tok_s", p.OutputTokS)
	e.float("steady_tok_s", p.SteadyTokS)
	e.float("goodput_req_s", p.GoodputReqS)
	e.float("large_fraction", p.LargeShare)
	e.float("hops_per_request", p.Hops)
	e.dist("ttft_ms", p.TTFT)
	e.dist("tpot_ms", p.TPOT)
	e.dist("itl_ms", p.ITL)
	e.dist("e2e_ms", p.E2E)
	row(e, "batch_mean", p.BatchMean, appendNullable)
	row(e, "busy", p.Busy, appendNullable)
	e.switchCost("switch_us", p.Switch)
	e.float("cost_usd_per_mtok", p.CostPerMTok)
	e.name("source", p.Source)
	e.name("arrival", p.Arrival)
	e.name("batching", p.Batching)
	e.name("latency", p.Latency)
	e.axes("axes", p.Axes)
	e.count("cancelled", int64(p.Cancelled))
	e.count("preempted", p.Preempted)
	e.count("kv_dropped", p.KVDropped)
	e.float("slo_attainment", p.SLOAttainment)
	e.float("finished_req_s", p.RequestRate)
	e.dist("icl_ms", p.ICL)
	e.dist("ttft_from_send_ms", p.TTFTFromSend)
	e.float("agreement", p.Agreement)
	e.float("nll_nats_per_token", p.NLL)
	e.positive("repeats", p.Repeats)
	e.float("output_tok_s_ci95", p.OutputCI95)
	e.name("percentile_note", p.Note)
	e.close('}')
}

func (e *encoder) switchCost(k string, s *Switch) {
	e.key(k)
	if s == nil {
		e.null()
		return
	}
	e.open('{')
	e.dist("enqueue", s.Enqueue)
	e.dist("transport", s.Transport)
	e.dist("wait", s.Wait)
	e.dist("extend", s.Extend)
	e.close('}')
}

func (e *encoder) comparison(c *Comparison) {
	e.open('{')
	e.text("of", c.Of)
	e.text("against", c.Against)
	e.name("algorithm", c.Algorithm)
	e.name("workload", c.Workload)
	e.positive("concurrency", c.Concurrency)
	e.float("throughput_ratio", c.ThroughputRatio)
	e.float("tpot_p99_change", c.TPOTP99Change)
	e.float("ttft_p99_change", c.TTFTP99Change)
	e.name("pair", c.Pair)
	e.name("arrival", c.Arrival)
	e.axes("axes", c.Axes)
	e.close('}')
}

func (e *encoder) claim(c *Claim) {
	e.open('{')
	e.text("source", c.Source)
	e.text("id", c.ID)
	e.float("published", c.Published)
	e.float("ours", c.Ours)
	e.float("difference", c.Difference)
	e.text("kind", c.Kind)
	e.text("status", c.Status)
	e.name("why", c.Why)
	e.close('}')
}

// ReadSummary reads a summary.json. name stands for the input in errors. Any other schema than SummarySchema is an
// error; keys that this version doesn't know are passed over.
func ReadSummary(name string, r io.Reader) (*Summary, error) {
	var s Summary
	if err := readDocument(name, r, SummarySchema, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// readDocument reads one JSON object whose "schema" must be the wanted one into v, and nothing after it.
func readDocument(name string, r io.Reader, schema string, v any) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%s: %w", name, describeOffset(data, err))
	}
	switch {
	case head.Schema == nil:
		return fmt.Errorf("%s: field schema: missing: want %q", name, schema)
	case *head.Schema != schema:
		return fmt.Errorf("%s: field schema: found %q, want %q", name, *head.Schema, schema)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, describeOffset(data, err))
	}
	return nil
}

// describeOffset adds the line to an error of encoding/json over a whole document.
func describeOffset(data []byte, err error) error {
	var offset int64
	switch e := err.(type) {
	case *json.SyntaxError:
		offset = e.Offset
	case *json.UnmarshalTypeError:
		offset = e.Offset
	default:
		return err
	}
	offset = min(max(offset, 0), int64(len(data)))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:offset], []byte("\n")), describeJSON(err))
}
