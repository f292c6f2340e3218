package workloads

import (
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"github.com/trbench/trbench/workloads/trace"
)

// Report is what a look at a dataset file finds.
type Report struct {
	File      string       `json:"file"`
	Bytes     int64        `json:"bytes"` // 0 where it isn't a plain file
	Format    string       `json:"format"`
	Sampler   string       `json:"sampler"`
	Entries   int          `json:"entries"`
	Usable    int          `json:"usable"`    // that the sampler lets through
	Malformed int          `json:"malformed"` // that have a problem
	Skipped   []Skip       `json:"skipped"`
	Prompt    *Lengths     `json:"prompt_tokens"` // of the usable entries; null where there are none
	Output    *Lengths     `json:"output_tokens"`
	Arrivals  *Arrivals    `json:"arrivals"` // of the usable entries; null where the file has none
	Problems  []*DataError `json:"problems"` // the first of them
	Found     int          `json:"problems_found"`
	Notes     []string     `json:"notes"`
}

// Lengths sums up lengths, in tokens. Percentiles interpolate linearly between order statistics (type 7).
type Lengths struct {
	Mean float64 `json:"mean"`
	Min  int     `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  int     `json:"max"`
}

// Arrivals sums up recorded arrivals, in order of time.
type Arrivals struct {
	First time.Duration `json:"first_ns"`
	Last  time.Duration `json:"last_ns"`
	Rate  float64       `json:"req_s"`  // gaps over the time they take; 0 where all arrive at once
	CV    float64       `json:"gap_cv"` // standard deviation of the gaps over their mean; 0 likewise
}

// Err is nil for a file that LoadFile would take, else the first problem, or that nothing in it is usable.
func (r *Report) Err() error {
	if len(r.Problems) > 0 {
		return r.Problems[0]
	}
	return nil
}

// Inspect reads a file to its end and reports what is in it, going on behind bad entries; it keeps the first limit
// problems. A file that can't be read at all is a report with one problem. The error is for wrong options.
func Inspect(path string, limit int, o Options) (*Report, error) {
	if err := o.valid(); err != nil {
		return nil, err
	}
	read, err := o.reading()
	if err != nil {
		return nil, err
	}
	r := &Report{File: path, Skipped: []Skip{}, Problems: []*DataError{}, Notes: []string{}}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		r.Bytes = info.Size()
	}
	read.Problem = func(e *DataError) bool {
		r.add(e, limit)
		return true
	}
	t, err := trace.ReadFile(path, read)
	if err != nil {
		var e *DataError
		if !errors.As(err, &e) {
			return nil, err
		}
		r.add(e, limit)
		return r, nil
	}
	rules, err := rulesFor(o, usual(t))
	if err != nil {
		return nil, err
	}
	r.describe(t, rules, o, limit)
	return r, nil
}

func (r *Report) add(e *DataError, limit int) {
	r.Found++
	if len(r.Problems) < max(limit, 1) {
		r.Problems = append(r.Problems, e)
	}
}

func (r *Report) describe(t *trace.Trace, rules sampler, o Options, limit int) {
	set := newSet("", "", rules)
	usable := set.sieve(t, rules, o)
	r.Format, r.Sampler, r.Entries, r.Malformed = string(t.Format), rules.name, t.Total, t.Malformed
	r.Usable, r.Skipped = len(usable), set.Skipped
	r.Notes = append(append(r.Notes, t.Notes...), set.Notes...)
	if len(usable) == 0 {
		if r.Found == 0 {
			r.add(&DataError{File: r.File, Msg: set.nothingUsable()}, limit)
		}
		return
	}
	var prompts, outputs []int
	for _, e := range usable {
		prompts, outputs = append(prompts, e.Prompt), append(outputs, e.Output)
	}
	r.Prompt, r.Output = lengths(prompts), lengths(outputs)
	if t.HasArrivals {
		r.Arrivals = arrivals(usable)
	}
}

// lengths sums up at least one length; it sorts them.
func lengths(tokens []int) *Lengths {
	slices.Sort(tokens)
	sum := 0
	for _, n := range tokens {
		sum += n
	}
	return &Lengths{
		Mean: float64(sum) / float64(len(tokens)),
		Min:  tokens[0],
		P50:  percentile(tokens, .5),
		P90:  percentile(tokens, .9),
		P99:  percentile(tokens, .99),
		Max:  tokens[len(tokens)-1],
	}
}

// percentile is the q-quantile of sorted values by linear interpolation, type 7 (numpy's default).
func percentile(sorted []int, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	low, high := float64(sorted[i]), float64(sorted[i+1])
	return low + float64((at-float64(i))*(high-low))
}

// arrivals sums up the arrivals of at least one entry.
func arrivals(entries []trace.Entry) *Arrivals {
	at := make([]time.Duration, len(entries))
	for i, e := range entries {
		at[i] = e.Arrival
	}
	slices.Sort(at)
	a := &Arrivals{First: at[0], Last: at[len(at)-1]}
	long := (a.Last - a.First).Seconds()
	if long == 0 {
		return a
	}
	gaps := float64(len(at) - 1)
	a.Rate = gaps / long
	mean := long / gaps
	var squares float64
	for i := 1; i < len(at); i++ {
		d := (at[i] - at[i-1]).Seconds() - mean
		squares += float64(d * d)
	}
	if gaps > 1 {
		a.CV = math.Sqrt(squares/(gaps-1)) / mean
	}
	return a
}
