package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// Verdict is what a sweep says about one group: which point is best, and what it is worth against eager.
type Verdict struct {
	Group       string `json:"group"`
	Workload    string `json:"workload"`
	Concurrency int    `json:"concurrency"`
	// Best is the best point that keeps to the limits; nil if none does.
	Best *SweepPoint `json:"-"`
	// Eager is the point of the group that delays nothing; nil if the sweep has none.
	Eager *SweepPoint `json:"-"`

	BestName  string        `json:"best"` // "threshold 3", "gate:4", or the swept values
	Policy    string        `json:"policy"`
	Threshold []int         `json:"threshold"`
	Value     results.Float `json:"value"`       // of the objective's metric
	Gain      results.Float `json:"gain"`        // of the objective's metric over eager, a fraction
	GainCI    results.Float `json:"gain_ci95"`   // half-width of its 95 % interval over paired repeats
	TPOT      results.Float `json:"tpot_p99_ms"` // of the best point
	TPOTCost  results.Float `json:"tpot_p99_change"`
	// Worth says that the gain is above noise: its 95 % interval excludes 0.
	Worth bool `json:"worth"`
	// Exact is the Markov model's choice, where it can be computed.
	Exact *ExactChoice `json:"exact"`

	members []*SweepPoint
}

// Verdicts judges each group of points, in the order of the sweep.
func (s *Sweep) Verdicts(points []SweepPoint) []Verdict {
	var order []string
	groups := map[string][]*SweepPoint{}
	for i := range points {
		g := points[i].Job.Group
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], &points[i])
	}
	var out []Verdict
	for _, g := range order {
		out = append(out, s.judge(g, groups[g]))
	}
	return out
}

func (s *Sweep) judge(group string, members []*SweepPoint) Verdict {
	v := Verdict{Group: group, Workload: members[0].Point.Workload, Concurrency: members[0].Point.Concurrency, members: members}
	var points []*results.Point
	for _, m := range members {
		points = append(points, &m.Point)
	}
	i := s.Objective.Best(points)
	if i < 0 {
		return v
	}
	v.Best = members[i]
	v.Eager = eagerOf(v.Best, members)
	v.BestName = s.choice(v.Best, delayed(members))
	v.Policy, v.Threshold = v.Best.Job.Delay.Policy, v.Best.Point.Threshold
	v.Value = Metric(&v.Best.Point, s.Objective.Metric)
	v.TPOT = v.Best.Point.TPOT.Percentile(99)
	if v.Eager == nil || !delayed(members) {
		return v
	}
	v.Gain = results.Change(v.Value, Metric(&v.Eager.Point, s.Objective.Metric))
	v.TPOTCost = results.Change(v.TPOT, v.Eager.Point.TPOT.Percentile(99))
	gains := s.paired(v.Best, v.Eager)
	if len(gains) > 1 {
		_, half := metrics.MeanCI(gains)
		v.GainCI = results.F(half)
	}
	v.Worth = v.Best != v.Eager && s.above(v.Best, v.Eager)
	return v
}

// eagerOf is the eager point with p's other settings: what the delay alone is worth is told against it. nil if there is
// none.
func eagerOf(p *SweepPoint, members []*SweepPoint) *SweepPoint {
	for _, m := range members {
		if isEager(m) && m.Point.System == p.Point.System && m.Point.Algorithm == p.Point.Algorithm && slices.Equal(m.Job.Axes, p.Job.Axes) {
			return m
		}
	}
	return nil
}

// isEager says that a point's batches wait for nobody.
func isEager(p *SweepPoint) bool {
	if d := p.Job.Delay; d.Policy != "" {
		return d == Delay{"threshold", 1}
	}
	if p.Job.Plan.Policy.Gate > 1 || p.Job.Plan.Policy.Timer > 0 {
		return false
	}
	return !slices.ContainsFunc(p.Point.Threshold, func(b int) bool { return b > 1 })
}

// paired is the relative gain of a over b in each repeat that both ran: the draws are the same, so noise cancels.
func (s *Sweep) paired(a, b *SweepPoint) []float64 {
	var out []float64
	for k := range min(len(a.Repeats), len(b.Repeats)) {
		x, ok := results.Change(Metric(&a.Repeats[k], s.Objective.Metric), Metric(&b.Repeats[k], s.Objective.Metric)).Get()
		if ok {
			out = append(out, x)
		}
	}
	return out
}

// choice names a point by what an operator would set; delays says that delays were compared.
func (s *Sweep) choice(p *SweepPoint, delays bool) string {
	var parts []string
	switch d := p.Job.Delay; {
	case !delays:
	case isEager(p):
		parts = append(parts, "eager")
	case d.Policy == "gate" || d.Policy == "timer":
		parts = append(parts, p.Job.Plan.Config.Batching)
	case p.Point.Threshold != nil:
		parts = append(parts, "threshold "+strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Point.Threshold), " ", ","), "[]"))
	}
	for _, a := range p.Job.Axes {
		if slices.Contains(decides, a.Key) {
			parts = append(parts, a.Key+" "+a.Value)
		}
	}
	for _, a := range s.Spec.Axes {
		switch a.Key {
		case "system":
			parts = append(parts, p.Point.System)
		case "algorithm":
			if p.Point.Algorithm != "" { // one model alone has none
				parts = append(parts, p.Point.Algorithm)
			}
		}
	}
	if len(parts) == 0 {
		return "as configured"
	}
	return strings.Join(parts, ", ")
}

// Recommendation is the sweep in one sentence. Of many groups it names those that gain most.
func (s *Sweep) Recommendation(verdicts []Verdict) string {
	var worth []*Verdict
	var chosen, none, unmet []string
	var names []string   // choices in which no delay was compared
	var where [][]string // the groups of each
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case v.Best == nil:
			unmet = append(unmet, v.Group)
		case v.Worth:
			worth = append(worth, v)
		case v.Eager == nil || !delayed(v.members):
			if i := slices.Index(names, v.BestName); i >= 0 {
				where[i] = append(where[i], v.Group)
			} else {
				names, where = append(names, v.BestName), append(where, []string{v.Group})
			}
		default:
			none = append(none, v.Group)
		}
	}
	for i, name := range names {
		chosen = append(chosen, name+" at "+few(where[i]))
	}
	rest := ""
	if len(worth) > namedGroups {
		rest = fmt.Sprintf(", and a gain at %d more", len(worth)-namedGroups)
		slices.SortStableFunc(worth, func(a, b *Verdict) int {
			return cmp.Compare(math.Abs(b.Gain.Or(0)), math.Abs(a.Gain.Or(0)))
		})
		worth = worth[:namedGroups]
	}
	for _, v := range worth {
		chosen = append(chosen, fmt.Sprintf("%s at %s (%+.1f %% %s, P99 TPOT %+.1f %%)", v.BestName, v.Group, 100*v.Gain.Or(math.NaN()),
			s.Objective.Metric, 100*v.TPOTCost.Or(math.NaN())))
	}
	var parts []string
	if len(chosen) > 0 {
		parts = append(parts, "use "+strings.Join(chosen, "; ")+rest)
	}
	if len(none) > 0 {
		parts = append(parts, "no delay is worth it at "+few(none))
	}
	if len(unmet) > 0 {
		parts = append(parts, "nothing keeps to the limits at "+few(unmet))
	}
	for i, p := range parts {
		parts[i] = strings.ToUpper(p[:1]) + p[1:]
	}
	return strings.Join(parts, ". ") + "."
}

// delayed says that some of the points delay their batches.
func delayed(members []*SweepPoint) bool {
	return slices.ContainsFunc(members, func(m *SweepPoint) bool { return !isEager(m) })
}

// namedGroups is how many groups a sentence names.
const namedGroups = 4

// few lists the first groups and counts the others.
func few(groups []string) string {
	if n := len(groups); n > namedGroups {
		return strings.Join(groups[:namedGroups], "; ") + fmt.Sprintf(" and %d more", n-namedGroups)
	}
	return strings.Join(groups, "; ")
}

// onlyByN says that the groups differ in the concurrency alone.
func onlyByN(verdicts []Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Group != fmt.Sprintf("N = %d", verdicts[i].Concurrency) {
			return false
		}
	}
	return true
}

// Thresholds is the best threshold for each number of active requests, as a table that run loads: what the sweep found
// at the concurrencies that it ran, and in between the vector of the next lower one. It is nil unless the sweep compares
// thresholds of one workload and nothing else.
func (s *Sweep) Thresholds(verdicts []Verdict) core.Table {
	if !onlyByN(verdicts) {
		return nil
	}
	byN := map[int][]int{}
	most, models := 0, 0
	for i := range verdicts {
		v := &verdicts[i]
		if v.Concurrency == 0 || v.Best == nil {
			return nil
		}
		best := s.bestThreshold(v)
		if best == nil {
			return nil
		}
		byN[v.Concurrency], most, models = best, max(most, v.Concurrency), len(best)
	}
	var table core.Table
	row := core.Scalar(max(models, 1), 1)
	for n := 1; n <= most; n++ {
		if b := byN[n]; b != nil {
			row = b
		}
		table = append(table, row)
	}
	return table
}

// bestThreshold is the best of a group's points under the threshold policy, if its gain is above noise; else eager.
func (s *Sweep) bestThreshold(v *Verdict) []int {
	if v.Eager == nil {
		return nil
	}
	if best := s.thresholdPoint(v); best != v.Eager {
		return best.Point.Threshold
	}
	return core.Scalar(len(v.Eager.Job.Plan.Pair.Models), 1)
}

func (s *Sweep) thresholdPoint(v *Verdict) *SweepPoint {
	best := v.Eager
	for _, m := range v.members {
		if m.Job.Delay.Policy == "gate" || m.Job.Delay.Policy == "timer" || m.Point.Threshold == nil || !s.Objective.Meets(&m.Point) {
			continue
		}
		if s.Objective.Better(&m.Point, &best.Point) && s.above(m, v.Eager) {
			best = m
		}
	}
	return best
}

// above says that a is better than b by more than the noise of their paired repeats.
func (s *Sweep) above(a, b *SweepPoint) bool {
	gains := s.paired(a, b)
	if len(gains) == 0 {
		return false
	}
	mean, half := gains[0], 0.
	if len(gains) > 1 {
		mean, half = metrics.MeanCI(gains)
	}
	if !s.Objective.Maximise {
		mean = -mean
	}
	return mean > half && mean > 0
}
