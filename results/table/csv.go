package table

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/results"
)

// column is a column of the CSV: its heading, and its cell for a point.
type column struct {
	name string
	cell func(*results.Point) string
}

// CSV writes one line a point under the keys of summary.json, floats unrounded and an empty cell for null. A
// distribution takes a column a figure (ttft_ms_mean, ttft_ms_p50, ...), a list is separated by blanks, and a swept key
// has the column axis_KEY. The columns of a distribution are the percentiles that any point has.
func CSV(w io.Writer, s *results.Summary) error {
	columns := csvColumns(s.Points)
	out := csv.NewWriter(w)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.name
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for i := range s.Points {
		for j, c := range columns {
			record[j] = c.cell(&s.Points[i])
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvColumns(points []results.Point) []column {
	type P = results.Point
	columns := []column{
		{"system", func(p *P) string { return p.System }},
		{"algorithm", func(p *P) string { return p.Algorithm }},
		{"workload", func(p *P) string { return p.Workload }},
		{"pair", func(p *P) string { return p.Pair }},
		{"concurrency", func(p *P) string { return positive(p.Concurrency) }},
		{"arrival", func(p *P) string { return p.Arrival }},
		{"threshold", func(p *P) string { return joined(p.Threshold, strconv.Itoa) }},
		{"batching", func(p *P) string { return p.Batching }},
		{"source", func(p *P) string { return p.Source }},
		{"latency", func(p *P) string { return p.Latency }},
		{"requests", func(p *P) string { return strconv.Itoa(p.Requests) }},
		{"failed", func(p *P) string { return strconv.Itoa(p.Failed) }},
		{"cancelled", func(p *P) string { return strconv.Itoa(p.Cancelled) }},
		{"output_tokens", func(p *P) string { return strconv.FormatInt(p.OutputTokens, 10) }},
		{"duration_s", func(p *P) string { return exact(p.DurationS) }},
		{"output_tok_s", func(p *P) string { return exact(p.OutputTokS) }},
		{"output_tok_s_ci95", func(p *P) string { return exact(p.OutputCI95) }},
		{"repeats", func(p *P) string { return positive(p.Repeats) }},
		{"steady_tok_s", func(p *P) string { return exact(p.SteadyTokS) }},
		{"finished_req_s", func(p *P) string { return exact(p.RequestRate) }},
		{"goodput_req_s", func(p *P) string { return exact(p.GoodputReqS) }},
		{"slo_attainment", func(p *P) string { return exact(p.SLOAttainment) }},
		{"large_fraction", func(p *P) string { return exact(p.LargeShare) }},
		{"hops_per_request", func(p *P) string { return exact(p.Hops) }},
		{"batch_mean", func(p *P) string { return joined(p.BatchMean, exact) }},
		{"busy", func(p *P) string { return joined(p.Busy, exact) }},
		{"preempted", func(p *P) string { return strconv.FormatInt(p.Preempted, 10) }},
		{"kv_dropped", func(p *P) string { return strconv.FormatInt(p.KVDropped, 10) }},
		{"cost_usd_per_mtok", func(p *P) string { return exact(p.CostPerMTok) }},
		{"agreement", func(p *P) string { return exact(p.Agreement) }},
		{"nll_nats_per_token", func(p *P) string { return exact(p.NLL) }},
	}
	switchPart := func(of func(*results.Switch) *results.Dist) func(*P) *results.Dist {
		return func(p *P) *results.Dist {
			if p.Switch == nil {
				return nil
			}
			return of(p.Switch)
		}
	}
	for _, d := range []struct {
		key string
		of  func(*P) *results.Dist
	}{
		{"ttft_ms", func(p *P) *results.Dist { return p.TTFT }},
		{"ttft_from_send_ms", func(p *P) *results.Dist { return p.TTFTFromSend }},
		{"tpot_ms", func(p *P) *results.Dist { return p.TPOT }},
		{"itl_ms", func(p *P) *results.Dist { return p.ITL }},
		{"icl_ms", func(p *P) *results.Dist { return p.ICL }},
		{"e2e_ms", func(p *P) *results.Dist { return p.E2E }},
		{"switch_us_enqueue", switchPart(func(s *results.Switch) *results.Dist { return s.Enqueue })},
		{"switch_us_transport", switchPart(func(s *results.Switch) *results.Dist { return s.Transport })},
		{"switch_us_wait", switchPart(func(s *results.Switch) *results.Dist { return s.Wait })},
		{"switch_us_extend", switchPart(func(s *results.Switch) *results.Dist { return s.Extend })},
	} {
		columns = append(columns, column{d.key + "_mean", func(p *P) string { return exact(d.of(p).MeanValue()) }})
		for _, q := range quantilesOf(points, d.of) {
			columns = append(columns, column{d.key + "_" + results.Quantile{P: q}.Key(), func(p *P) string {
				return exact(d.of(p).Percentile(q))
			}})
		}
	}
	for _, key := range axisKeys(points) {
		columns = append(columns, column{"axis_" + key, func(p *P) string { return axisValue(p, key) }})
	}
	return columns
}

// quantilesOf lists the usual percentiles, so that the columns of two runs agree, and those that a distribution has in
// any point.
func quantilesOf(points []results.Point, of func(*results.Point) *results.Dist) []float64 {
	found := []float64{50, 90, 99}
	for i := range points {
		if d := of(&points[i]); d != nil {
			for _, q := range d.Quantiles {
				found = append(found, q.P)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// axisKeys lists the swept keys in the order in which they appear.
func axisKeys(points []results.Point) []string {
	var keys []string
	for i := range points {
		for _, a := range points[i].Axes {
			if !slices.Contains(keys, a.Key) {
				keys = append(keys, a.Key)
			}
		}
	}
	return keys
}

func axisValue(p *results.Point, key string) string {
	for _, a := range p.Axes {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// exact writes the shortest decimal that reads back as the same float64.
func exact(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func joined[T any](list []T, text func(T) string) string {
	cells := make([]string, len(list))
	for i, v := range list {
		if cells[i] = text(v); cells[i] == "" {
			cells[i] = none // an empty cell in a list would be lost
		}
	}
	return strings.Join(cells, " ")
}
