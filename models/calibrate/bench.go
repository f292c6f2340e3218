package calibrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// Bench is a result of `vllm bench serve --save-result`, in this program's metrics: docs/METHODOLOGY.md defines them.
// Where the file has the lists of --save-detailed they are computed from those, else they are its own figures.
type Bench struct {
	File        string `json:"file"`
	Model       string `json:"model"`
	Backend     string `json:"backend"`
	RequestRate string `json:"request_rate"` // requests a second, or "inf"
	Concurrency int    `json:"concurrency"`  // most requests at once; 0 where there was no limit
	Requests    int    `json:"requests"`     // that completed
	Failed      int    `json:"failed"`
	Detailed    bool   `json:"detailed"` // the file has every request

	InputTokens  int64         `json:"input_tokens"`
	OutputTokens int64         `json:"output_tokens"`
	DurationS    float64       `json:"duration_s"`
	OutputTokS   float64       `json:"output_tok_s"`
	RequestRateS float64       `json:"finished_req_s"`
	TTFT         *results.Dist `json:"ttft_from_send_ms"` // the benchmark's clock starts when it sends
	TPOT         *results.Dist `json:"tpot_ms"`           // of requests of two tokens or more
	ITL          *results.Dist `json:"itl_ms"`            // gaps between tokens: zeros for those of one chunk
	ICL          *results.Dist `json:"icl_ms"`            // gaps between chunks
	E2E          *results.Dist `json:"e2e_ms"`
	Acceptance   results.Float `json:"spec_decode_acceptance"` // share of drafted tokens that were kept
	Warnings     []string      `json:"warnings"`
}

// maxBench bounds a benchmark's file, bytes; its generated texts are skipped.
const maxBench = 1 << 30

// ReadBench reads a benchmark's result. name stands in errors, which are *DataError.
func ReadBench(name string, in io.Reader) (*Bench, error) {
	b := &benchReader{fields: map[string]benchField{}}
	if err := b.read(name, in); err != nil {
		return nil, err
	}
	return b.bench()
}

// benchField is a field of the file.
type benchField struct {
	line int
	raw  json.RawMessage
}

type benchReader struct {
	name   string
	fields map[string]benchField
	out    Bench
}

func (b *benchReader) fault(field, format string, args ...any) error {
	return &DataError{File: b.name, Line: b.fields[field].line, Column: field, Msg: fmt.Sprintf(format, args...)}
}

// statistic matches the benchmark's own figures, such as p99_ttft_ms.
var statistic = regexp.MustCompile(`^(mean|median|p[0-9.]+)_(ttft|tpot|itl|e2el)_ms$`)

// wanted says that a field is looked at; what isn't, texts above all, is not kept.
func wanted(field string) bool {
	return statistic.MatchString(field) || slices.Contains([]string{
		"model_id", "backend", "endpoint_type", "request_rate", "max_concurrency", "completed", "failed", "duration",
		"total_input_tokens", "total_output_tokens", "input_lens", "output_lens",
		"ttfts", "itls", "start_times", "errors", "spec_decode_acceptance_rate",
	}, field)
}

func (b *benchReader) read(name string, in io.Reader) error {
	b.name = name
	lines := &lineCounter{in: io.LimitReader(in, maxBench)}
	dec := json.NewDecoder(lines)
	fail := func(err error) error {
		line := lines.at(dec.InputOffset())
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if lines.read == 0 {
				return &DataError{File: name, Msg: "empty, wanted a benchmark's result", Err: err}
			}
			return &DataError{File: name, Line: line, Msg: "truncated: the text ends inside the object", Err: err}
		}
		return &DataError{File: name, Line: line, Msg: fmt.Sprintf("not JSON: %v", err), Err: err}
	}
	t, err := dec.Token()
	if err != nil {
		return fail(err)
	}
	if t != json.Delim('{') {
		return &DataError{File: name, Line: lines.at(dec.InputOffset()),
			Msg: fmt.Sprintf("found %s, wanted an object", describe(t))}
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fail(err)
		}
		field, line := t.(string), lines.at(dec.InputOffset())
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fail(err)
		}
		if seen[field] {
			return &DataError{File: name, Line: line, Column: field,
				Msg: "found it twice in one object, wanted it once"}
		}
		seen[field] = true
		if wanted(field) && string(raw) != "null" {
			b.fields[field] = benchField{line, raw}
		}
	}
	if _, err := dec.Token(); err != nil {
		return fail(err)
	}
	if t, err := dec.Token(); !errors.Is(err, io.EOF) {
		if err != nil {
			return fail(err)
		}
		return &DataError{File: name, Line: lines.at(dec.InputOffset()),
			Msg: fmt.Sprintf("found %s behind the object, wanted nothing", describe(t))}
	}
	return nil
}

// get reads a field into v; false where there is none.
func (b *benchReader) get(field, wanted string, v any) (bool, error) {
	f, ok := b.fields[field]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(f.raw, v); err != nil {
		return false, b.fault(field, "found %s, wanted %s", quoted(string(f.raw)), wanted)
	}
	return true, nil
}

// number reads a number of at least 0; false where there is none.
func (b *benchReader) number(field string) (float64, bool, error) {
	var x float64
	ok, err := b.get(field, "a number", &x)
	if ok && !(x >= 0 && x <= 1e15) {
		return 0, false, b.fault(field, "found %g, wanted a number from 0 to 1e15", x)
	}
	return x, ok, err
}

func (b *benchReader) bench() (*Bench, error) {
	o := &b.out
	o.File, o.Warnings = b.name, []string{}
	for _, f := range []struct {
		field string
		to    *string
	}{
		{"model_id", &o.Model},
		{"endpoint_type", &o.Backend}, // the older name of
		{"backend", &o.Backend},
	} {
		if _, err := b.get(f.field, "a string", f.to); err != nil {
			return nil, err
		}
	}
	if err := b.rate(); err != nil {
		return nil, err
	}
	concurrency, _, err := b.number("max_concurrency")
	if err != nil {
		return nil, err
	}
	o.Concurrency = int(min(concurrency, math.MaxInt32))
	_, hasTTFT := b.fields["ttfts"]
	_, hasITL := b.fields["itls"]
	switch o.Detailed = hasTTFT && hasITL; {
	case o.Detailed:
		err = b.detailed()
	case hasTTFT != hasITL:
		return nil, &DataError{File: b.name, Msg: "has one of ttfts and itls without the other"}
	default:
		err = b.summarised()
	}
	if err != nil {
		return nil, err
	}
	rate, ok, err := b.number("spec_decode_acceptance_rate")
	if err != nil {
		return nil, err
	}
	if ok { // in percent
		o.Acceptance = results.F(rate / 100)
	}
	return o, nil
}

// rate reads request_rate: a number, or the text "inf".
func (b *benchReader) rate() error {
	f, ok := b.fields["request_rate"]
	if !ok {
		return nil
	}
	var text string
	if json.Unmarshal(f.raw, &text) == nil && text == "inf" {
		b.out.RequestRate = text
		return nil
	}
	x, _, err := b.number("request_rate")
	if err != nil {
		return b.fault("request_rate", `found %s, wanted a number or "inf"`, quoted(string(f.raw)))
	}
	b.out.RequestRate = strconv.FormatFloat(x, 'g', -1, 64)
	return nil
}

// detailed computes the metrics from the lists, of which each request has an entry.
func (b *benchReader) detailed() error {
	var ttfts, starts []float64
	var itls [][]float64
	var outputs, inputs []int64
	var errs []string
	for _, f := range []struct {
		field, wanted string
		to            any
		required      bool
		length        func() int
	}{
		{"ttfts", "a list of seconds", &ttfts, true, func() int { return len(ttfts) }},
		{"itls", "a list of lists of seconds", &itls, true, func() int { return len(itls) }},
		{"output_lens", "a list of counts", &outputs, true, func() int { return len(outputs) }},
		{"input_lens", "a list of counts", &inputs, false, func() int { return len(inputs) }},
		{"start_times", "a list of seconds", &starts, false, func() int { return len(starts) }},
		{"errors", "a list of strings", &errs, false, func() int { return len(errs) }},
	} {
		ok, err := b.get(f.field, f.wanted, f.to)
		if err != nil {
			return err
		}
		if !ok && f.required {
			return b.fault(f.field, "missing beside ttfts and itls")
		}
		if ok && f.length() != len(ttfts) {
			return b.fault(f.field, "has %d entries, wanted %d, as many as ttfts", f.length(), len(ttfts))
		}
	}
	o := &b.out
	var ttft, tpot, itl, icl, e2e []float64
	first, last := math.Inf(1), math.Inf(-1)
	merged, odd := 0, 0
	for i, n := range outputs {
		if n < 0 {
			return b.fault("output_lens", "entry %d is %d, wanted a count", i+1, n)
		}
		if n == 0 || errs != nil && errs[i] != "" {
			o.Failed++
			continue
		}
		if !(ttfts[i] >= 0 && ttfts[i] < 1e9) {
			return b.fault("ttfts", "entry %d is %g, wanted seconds from 0 to 1e9", i+1, ttfts[i])
		}
		rest := 0.0
		for _, gap := range itls[i] {
			if !(gap >= 0 && gap < 1e9) {
				return b.fault("itls", "entry %d holds %g, wanted seconds from 0 to 1e9", i+1, gap)
			}
			rest += gap
			itl, icl = append(itl, 1e3*gap), append(icl, 1e3*gap)
		}
		switch more := int(n) - 1 - len(itls[i]); {
		case more > 0: // tokens that came with another one
			merged += more
			if merged > maxRows*4 {
				return b.fault("output_lens", "entry %d is %d with %d gaps: too many tokens without a gap", i+1, n,
					len(itls[i]))
			}
			itl = append(itl, make([]float64, more)...)
		case more < 0:
			odd++
		}
		o.Requests++
		o.OutputTokens += n
		if inputs != nil {
			o.InputTokens += inputs[i]
		}
		ttft, e2e = append(ttft, 1e3*ttfts[i]), append(e2e, 1e3*(ttfts[i]+rest))
		if n > 1 {
			tpot = append(tpot, 1e3*rest/float64(n-1))
		}
		if starts != nil {
			first, last = min(first, starts[i]), max(last, starts[i]+ttfts[i]+rest)
		}
	}
	if o.Requests == 0 {
		return &DataError{File: b.name, Msg: fmt.Sprintf("no request completed, of %d", len(outputs))}
	}
	duration, ok, err := b.number("duration")
	switch {
	case err != nil:
		return err
	case starts != nil && last > first:
		duration = last - first
	case !ok || duration == 0:
		return b.fault("duration", "missing or 0, and there are no start_times: wanted one of them")
	}
	o.DurationS = duration
	o.OutputTokS, o.RequestRateS = float64(o.OutputTokens)/duration, float64(o.Requests)/duration
	if doubt := metrics.Doubt("ttft and e2e", 99, len(ttft)); doubt != "" {
		o.Warnings = append(o.Warnings, doubt)
	}
	o.TTFT, o.TPOT, o.E2E = metrics.Describe(ttft, nil), metrics.Describe(tpot, nil), metrics.Describe(e2e, nil)
	o.ITL, o.ICL = metrics.Describe(itl, nil), metrics.Describe(icl, nil)
	if merged > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%d of %d tokens came in a chunk with others: the file's own ITL "+
			"leaves their zero gaps out, itl_ms here has them", merged, o.OutputTokens))
	}
	if odd > 0 {
		o.Warnings = append(o.Warnings,
			fmt.Sprintf("%d requests have more gaps than tokens: output_lens counts retokenised text", odd))
	}
	return nil
}

// summarised takes the file's own figures.
func (b *benchReader) summarised() error {
	o := &b.out
	count := func(field string, to *int64, required bool) error {
		x, ok, err := b.number(field)
		if err == nil && required && !ok {
			err = b.fault(field, "missing, and so are ttfts and itls: not a result of vllm bench serve?")
		}
		if err == nil && x != math.Trunc(x) {
			err = b.fault(field, "found %g, wanted a whole number", x)
		}
		*to = int64(x)
		return err
	}
	var completed, failed int64
	if err := errors.Join(
		count("completed", &completed, true), count("failed", &failed, false),
		count("total_input_tokens", &o.InputTokens, false), count("total_output_tokens", &o.OutputTokens, true),
	); err != nil {
		return firstOf(err)
	}
	o.Requests, o.Failed = int(completed), int(failed)
	duration, ok, err := b.number("duration")
	if err != nil {
		return err
	}
	if !ok || duration == 0 {
		return b.fault("duration", "missing or 0, wanted seconds")
	}
	o.DurationS = duration
	o.OutputTokS, o.RequestRateS = float64(o.OutputTokens)/duration, float64(o.Requests)/duration
	for _, d := range []struct {
		name string
		to   **results.Dist
	}{{"ttft", &o.TTFT}, {"tpot", &o.TPOT}, {"itl", &o.ICL}, {"e2el", &o.E2E}} {
		if *d.to, err = b.dist(d.name); err != nil {
			return err
		}
	}
	o.Warnings = append(o.Warnings, "the file has no requests (--save-detailed): its own figures are taken, whose ITL "+
		"is of chunks")
	return nil
}

// firstOf is the first of joined errors: one mistake is told at a time.
func firstOf(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return err
}

// dist collects the file's figures of one metric; nil where it has none.
func (b *benchReader) dist(name string) (*results.Dist, error) {
	var d results.Dist
	found := false
	var fields []string
	for field := range b.fields {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	for _, field := range fields {
		m := statistic.FindStringSubmatch(field)
		if m == nil || m[2] != name {
			continue
		}
		x, _, err := b.number(field)
		if err != nil {
			return nil, err
		}
		found = true
		switch m[1] {
		case "mean":
			d.Mean = x
		case "median":
			d.Quantiles = setQuantile(d.Quantiles, 50, x)
		default:
			p, err := strconv.ParseFloat(strings.TrimPrefix(m[1], "p"), 64)
			if err != nil || !(p > 0 && p <= 100) {
				return nil, b.fault(field, "is no percentile")
			}
			d.Quantiles = setQuantile(d.Quantiles, p, x)
		}
	}
	if !found {
		return nil, nil
	}
	slices.SortFunc(d.Quantiles, func(a, b results.Quantile) int { return cmp.Compare(a.P, b.P) })
	return &d, nil
}

func setQuantile(q []results.Quantile, p, x float64) []results.Quantile {
	for i := range q {
		if q[i].P == p {
			q[i].Value = x
			return q
		}
	}
	return append(q, results.Quantile{P: p, Value: x})
}
