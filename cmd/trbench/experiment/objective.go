package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/results"
)

// Objective is what the best point of a sweep is best at, and what it must keep to.
type Objective struct {
	Text     string
	Maximise bool
	Metric   string
	Limits   []Limit
}

// Limit is one constraint: the metric on the side of Bound that Op says.
type Limit struct {
	Metric string
	Op     string // < <= > >=
	Bound  float64
}

// token is one word of an objective and where it stands.
type token struct {
	text string
	at   int // column, from 0
}

// ParseObjective reads "max METRIC [s.t. METRIC < NUMBER, ...]". An error says at which column it stands.
func ParseObjective(text string) (Objective, error) {
	o := Objective{Text: strings.Join(strings.Fields(text), " ")}
	words := tokens(text)
	fail := func(i int, format string, args ...any) (Objective, error) {
		at := len(text)
		if i < len(words) {
			at = words[i].at
		}
		return o, usagef("objective %q, column %d: "+format, append([]any{text, at + 1}, args...)...)
	}
	word := func(i int) string {
		if i < len(words) {
			return words[i].text
		}
		return "the end"
	}
	switch word(0) {
	case "max", "min":
		o.Maximise = word(0) == "max"
	default:
		return fail(0, "found %s, want max or min", word(0))
	}
	if len(words) < 2 {
		return fail(1, "want a metric")
	}
	if err := checkMetric(word(1)); err != nil {
		return fail(1, "%v", err)
	}
	o.Metric = word(1)
	i := 2
	if i == len(words) {
		return o, nil
	}
	if word(i) != "s.t." && word(i) != "st" {
		return fail(i, "found %s, want s.t. or the end", word(i))
	}
	for i++; ; i++ {
		if err := checkMetric(word(i)); err != nil || i >= len(words) {
			if i >= len(words) {
				return fail(i, "want a metric")
			}
			return fail(i, "%v", err)
		}
		l := Limit{Metric: word(i)}
		i++
		if l.Op = word(i); !slices.Contains([]string{"<", "<=", ">", ">="}, l.Op) {
			return fail(i, "found %s, want <, <=, > or >=", word(i))
		}
		i++
		bound, err := strconv.ParseFloat(word(i), 64)
		if err != nil || math.IsNaN(bound) || math.IsInf(bound, 0) {
			return fail(i, "found %s, want a number", word(i))
		}
		l.Bound = bound
		o.Limits = append(o.Limits, l)
		i++
		if i == len(words) {
			return o, nil
		}
		if word(i) != "," && word(i) != "and" {
			return fail(i, "found %s, want a comma, and, or the end", word(i))
		}
	}
}

// tokens splits at spaces; operators and commas stand alone.
func tokens(text string) []token {
	var out []token
	start := -1
	flush := func(end int) {
		if start >= 0 {
			out = append(out, token{text[start:end], start})
			start = -1
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case unicode.IsSpace(rune(c)):
			flush(i)
		case c == ',':
			flush(i)
			out = append(out, token{",", i})
		case c == '<' || c == '>':
			flush(i)
			n := 1
			if i+1 < len(text) && text[i+1] == '=' {
				n = 2
			}
			out = append(out, token{text[i : i+n], i})
			i += n - 1
		case start < 0:
			start = i
		}
	}
	flush(len(text))
	return out
}

// scalarMetrics are the figures of a point that are one number, by their key in summary.json.
func scalarMetrics() map[string]func(*results.Point) results.Float {
	return map[string]func(*results.Point) results.Float{
		"cost_usd_per_mtok":  func(p *results.Point) results.Float { return p.CostPerMTok },
		"output_tok_s":       func(p *results.Point) results.Float { return p.OutputTokS },
		"steady_tok_s":       func(p *results.Point) results.Float { return p.SteadyTokS },
		"goodput_req_s":      func(p *results.Point) results.Float { return p.GoodputReqS },
		"finished_req_s":     func(p *results.Point) results.Float { return p.RequestRate },
		"slo_attainment":     func(p *results.Point) results.Float { return p.SLOAttainment },
		"agreement":          func(p *results.Point) results.Float { return p.Agreement },
		"nll_nats_per_token": func(p *results.Point) results.Float { return p.NLL },
		"large_fraction":     func(p *results.Point) results.Float { return p.LargeShare },
		"hops_per_request":   func(p *results.Point) results.Float { return p.Hops },
		"duration_s":         func(p *results.Point) results.Float { return p.DurationS },
	}
}

// distMetrics are those that are a distribution; a metric names one of its figures: tpot_p99_ms, ttft_mean_ms.
func distMetrics() map[string]func(*results.Point) *results.Dist {
	return map[string]func(*results.Point) *results.Dist{
		"ttft": func(p *results.Point) *results.Dist { return p.TTFT },
		"tpot": func(p *results.Point) *results.Dist { return p.TPOT },
		"itl":  func(p *results.Point) *results.Dist { return p.ITL },
		"icl":  func(p *results.Point) *results.Dist { return p.ICL },
		"e2e":  func(p *results.Point) *results.Dist { return p.E2E },
	}
}

// Metric is a named figure of a point; null where the point has none.
func Metric(p *results.Point, name string) results.Float {
	if f := scalarMetrics()[name]; f != nil {
		return f(p)
	}
	dist, figure, ok := distMetric(name)
	if !ok {
		return results.Float{}
	}
	d := distMetrics()[dist](p)
	if figure == "mean" {
		return d.MeanValue()
	}
	q, _ := strconv.ParseFloat(figure[1:], 64)
	return d.Percentile(q)
}

// distMetric splits tpot_p99_ms into tpot and p99.
func distMetric(name string) (dist, figure string, ok bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[2] != "ms" || distMetrics()[parts[0]] == nil {
		return "", "", false
	}
	if parts[1] == "mean" {
		return parts[0], parts[1], true
	}
	if q, err := strconv.ParseFloat(strings.TrimPrefix(parts[1], "p"), 64); err != nil || !strings.HasPrefix(parts[1], "p") || !(q > 0 && q <= 100) {
		return "", "", false
	}
	return parts[0], parts[1], true
}

func checkMetric(name string) error {
	if scalarMetrics()[name] != nil {
		return nil
	}
	if _, _, ok := distMetric(name); ok {
		return nil
	}
	var names []string
	for n := range scalarMetrics() {
		names = append(names, n)
	}
	for n := range distMetrics() {
		for _, f := range []string{"mean", "p50", "p90", "p99"} {
			names = append(names, n+"_"+f+"_ms")
		}
	}
	slices.Sort(names)
	if near, ok := suggest.Nearest(name, names); ok {
		return fmt.Errorf("unknown metric %s: did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown metric %s (known: %s)", name, strings.Join(names, ", "))
}

// Percentiles are those that the objective reads beyond 50, 90 and 99.
func (o Objective) Percentiles() []float64 {
	var qs []float64
	for _, name := range append([]string{o.Metric}, limitMetrics(o.Limits)...) {
		if _, figure, ok := distMetric(name); ok && figure != "mean" {
			q, _ := strconv.ParseFloat(figure[1:], 64)
			qs = append(qs, q)
		}
	}
	return qs
}

func limitMetrics(limits []Limit) []string {
	var names []string
	for _, l := range limits {
		names = append(names, l.Metric)
	}
	return names
}

// Meets says that a point keeps to every limit.
func (o Objective) Meets(p *results.Point) bool {
	for _, l := range o.Limits {
		x, ok := Metric(p, l.Metric).Get()
		if !ok {
			return false
		}
		switch l.Op {
		case "<":
			ok = x < l.Bound
		case "<=":
			ok = x <= l.Bound
		case ">":
			ok = x > l.Bound
		case ">=":
			ok = x >= l.Bound
		}
		if !ok {
			return false
		}
	}
	return true
}

// Better says that a is better than b at the objective's metric. A point without the figure is never better.
func (o Objective) Better(a, b *results.Point) bool {
	x, ok := Metric(a, o.Metric).Get()
	if !ok {
		return false
	}
	y, ok := Metric(b, o.Metric).Get()
	if !ok {
		return true
	}
	if o.Maximise {
		return x > y
	}
	return x < y
}

// Best is the index of the best point that keeps to the limits; -1 if none does. Of equal ones it is the first.
func (o Objective) Best(points []*results.Point) int {
	best := -1
	for i, p := range points {
		if o.Meets(p) && (best < 0 || o.Better(p, points[best])) {
			best = i
		}
	}
	return best
}
