package calibrate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// TokensReport is what a token log says about routing.
//
// Its chain is that of the writers: who writes a token, given who wrote the one before. Where the large model writes
// one token at a time and the small one's draft is dropped (R2R, CITER, Co-LLM) each token was the small model's
// decision, so the chance that its rule fires is the large model's share, whatever came before.
type TokensReport struct {
	File     string    `json:"file"`
	Form     TokenForm `json:"form"`
	Models   []string  `json:"models"`
	Requests int       `json:"requests"`
	Tokens   int       `json:"tokens"`

	Share      []Estimate   `json:"share"`      // of tokens, by model
	Transition [][]Estimate `json:"transition"` // P: from the writer of a token to that of the next
	Moves      [][]int      `json:"moves"`      // counts behind it
	Runs       []*RunReport `json:"runs"`       // of tokens by one model, by model; null where there is none
	Phases     []Window     `json:"phases"`     // of the largest model's share

	// Of two models: what a simulation is asked for. Null otherwise.
	Routing *RoutingReport `json:"routing"`

	Acceptance *Estimate `json:"acceptance"`       // mean probability that speculative sampling keeps a draft
	Agreement  *Estimate `json:"top1_agreement"`   // share of positions at which the likeliest tokens agree
	Memory     *Estimate `json:"acceptance_lag_1"` // correlation of one position's acceptance with the next one's

	Warnings []string `json:"warnings"`

	hazards []hazard
	longest int // output tokens of the longest sequence
}

// RunReport is the runs of one model.
type RunReport struct {
	RunTest
	Index results.Float `json:"index"` // variance over the geometric one's
	Cut   int           `json:"cut"`   // runs that a sequence's end cut off
}

// Window is a stretch of the output.
type Window struct {
	From   int      `json:"from"` // position in the output
	Tokens int      `json:"tokens"`
	Rate   Estimate `json:"rate"`
}

// RoutingReport is the settings of a simulation of two models.
type RoutingReport struct {
	LargeFraction Estimate `json:"large_fraction"`
	ToLarge       Estimate `json:"p01"` // P(0->1)
	StayLarge     Estimate `json:"p11"` // P(1->1)
	// Correlation is P(1->1) - P(0->1), the chain's second eigenvalue: signal.Config.Correlation.
	Correlation Estimate `json:"correlation"`
	// After is P of an algorithm that writes one token on the large model and returns: [[1-s, s], [1, 0]].
	After struct {
		SwitchRate float64 `json:"switch_rate"`
	} `json:"one_token_each_time"`
	// Stay is that of one that writes on the large model until it lets go (R-Stitch): the small one leaves with
	// switch_rate, the large one returns with return_rate.
	Stay struct {
		SwitchRate float64 `json:"switch_rate"`
		ReturnRate float64 `json:"return_rate"`
	} `json:"while_it_fires"`
}

// maxWindows bounds the windows of a phase profile: what lies beyond is in the last.
const maxWindows = 64

// FitTokens measures a token log.
func FitTokens(log *TokenLog, o Options) (*TokensReport, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	if log.Tokens == 0 {
		return nil, &DataError{File: log.File, Msg: "holds no token"}
	}
	m := len(log.Models)
	r := &TokensReport{
		File: log.File, Form: log.Form, Models: log.Models, Requests: len(log.Sequences), Tokens: log.Tokens,
		Moves: make([][]int, m), hazards: make([]hazard, m), Warnings: []string{},
	}
	for i := range r.Moves {
		r.Moves[i] = make([]int, m)
	}
	cut := make([]int, m)
	written := make([]int, m)
	for i := range log.Sequences {
		r.count(log.Sequences[i].Tokens, written, cut)
	}
	r.chain(written)
	for i := range r.hazards {
		test, ok := r.hazards[i].geometric()
		if !ok {
			r.Runs = append(r.Runs, nil)
			continue
		}
		r.Runs = append(r.Runs, &RunReport{test, results.F(test.Index()), cut[i]})
	}
	r.phases(log, o.Window)
	if log.HasAccept {
		r.acceptance(log)
	}
	if log.HasAgree {
		e := r.clustered(log, func(t Token) float64 {
			if t.Agree {
				return 1
			}
			return 0
		})
		r.Agreement = &e
	}
	r.warn(log)
	return r, nil
}

// count adds one sequence. A gap in its positions ends a run without telling how it would have gone on.
func (r *TokensReport) count(tokens []Token, written, cut []int) {
	length := 0
	for i, t := range tokens {
		written[t.Model]++
		length++
		if i+1 < len(tokens) && tokens[i+1].Position == t.Position+1 {
			next := tokens[i+1].Model
			r.Moves[t.Model][next]++
			if next == t.Model {
				continue
			}
			r.hazards[t.Model].add(length, true)
		} else {
			r.hazards[t.Model].add(length, false)
			cut[t.Model]++
		}
		length = 0
	}
}

// chain states shares and the matrix.
func (r *TokensReport) chain(written []int) {
	n := float64(r.Tokens)
	for i, row := range r.Moves {
		sum := 0
		for _, k := range row {
			sum += k
		}
		var out []Estimate
		for _, k := range row { // given who wrote the token before, the next one's writer is a fresh draw
			out = append(out, wilson(float64(k), float64(sum), float64(sum)))
		}
		r.Transition = append(r.Transition, out)
		share := float64(written[i]) / n
		r.Share = append(r.Share, wilson(float64(written[i]), n, n/r.inflation(i, share)))
	}
	if len(r.Models) != 2 {
		return
	}
	q := &RoutingReport{LargeFraction: r.Share[1], ToLarge: r.Transition[0][1], StayLarge: r.Transition[1][1]}
	p01, p11 := q.ToLarge.Value, q.StayLarge.Value
	n0, n1 := r.Moves[0][0]+r.Moves[0][1], r.Moves[1][0]+r.Moves[1][1]
	if n0 > 0 && n1 > 0 {
		half := z95 * math.Sqrt(smoothVariance(p01, n0)+smoothVariance(p11, n1))
		q.Correlation = between(p11-p01, max(-1, p11-p01-half), min(1, p11-p01+half))
	}
	q.After.SwitchRate = q.LargeFraction.Value
	q.Stay.SwitchRate = p01
	if q.Stay.ReturnRate = 1; p01 < 1 {
		q.Stay.ReturnRate = min(1, (1-p11)/(1-p01))
	}
	r.Routing = q
}

// smoothVariance is that of a share of n, with two successes and two failures more so that none and all have one, too
// (Agresti and Coull, 1998).
func smoothVariance(p float64, n int) float64 {
	m := float64(n) + 4
	q := (p*float64(n) + 2) / m
	return q * (1 - q) / m
}

// inflation is how many times the variance of model i's share is that of independent tokens: (1+c) / (1-c) for a chain
// whose second eigenvalue is c.
func (r *TokensReport) inflation(i int, share float64) float64 {
	stay := r.Transition[i][i].Value
	if share <= 0 || share >= 1 {
		return 1
	}
	c := (stay - share) / (1 - share) // of the two-state chain "written by i, or not"
	c = min(max(c, 0), .999)
	return (1 + c) / (1 - c)
}

// phases states the largest model's share by window of the output.
func (r *TokensReport) phases(log *TokenLog, width int) {
	last := uint8(len(log.Models) - 1)
	var tokens, large []int
	for i := range log.Sequences {
		s := log.Sequences[i].Tokens
		for _, t := range s {
			out := int(t.Position - s[0].Position)
			r.longest = max(r.longest, out+1)
			w := min(out/width, maxWindows-1)
			for len(tokens) <= w {
				tokens, large = append(tokens, 0), append(large, 0)
			}
			tokens[w]++
			if t.Model == last {
				large[w]++
			}
		}
	}
	by := r.inflation(int(last), r.Share[last].Value)
	for w, n := range tokens {
		if n == 0 {
			continue
		}
		r.Phases = append(r.Phases, Window{w * width, n, wilson(float64(large[w]), float64(n), float64(n)/by)})
	}
}

// signalPhases are the windows as the signal of a simulation takes them: factors of the mean rate. nil where the rate is
// 0.
func (r *TokensReport) signalPhases() []signal.Phase {
	mean := r.Share[len(r.Share)-1].Value
	if mean == 0 {
		return nil
	}
	var out []signal.Phase
	for _, w := range r.Phases {
		out = append(out, signal.Phase{From: int32(w.From), Factor: w.Rate.Value / mean})
	}
	return out
}

// acceptance states the mean of the acceptance probabilities, and how far it lasts.
func (r *TokensReport) acceptance(log *TokenLog) {
	mean := r.clustered(log, func(t Token) float64 { return t.Accept })
	r.Acceptance = &mean
	var xy, xx, pairs float64
	all := 0
	for i := range log.Sequences {
		s := log.Sequences[i].Tokens
		for k := range s {
			d := s[k].Accept - mean.Value
			xx += d * d
			all++
			if k+1 < len(s) && s[k+1].Position == s[k].Position+1 {
				xy += d * (s[k+1].Accept - mean.Value)
				pairs++
			}
		}
	}
	if pairs > 3 && xx > 0 {
		c := (xy / pairs) / (xx / float64(all))
		half := z95 / math.Sqrt(pairs)
		e := between(c, max(-1, c-half), min(1, c+half))
		r.Memory = &e
	}
}

// clustered is the mean of a value over all tokens. Tokens of a request are alike, so its interval counts requests, not
// tokens; with fewer than ten of them it counts 20 blocks of tokens.
func (r *TokensReport) clustered(log *TokenLog, value func(Token) float64) Estimate {
	var sums, sizes []float64
	add := func(tokens []Token) {
		sum := 0.0
		for _, t := range tokens {
			sum += value(t)
		}
		sums, sizes = append(sums, sum), append(sizes, float64(len(tokens)))
	}
	const fewRequests, parts = 10, 20
	for i := range log.Sequences {
		tokens := log.Sequences[i].Tokens
		if len(log.Sequences) >= fewRequests {
			add(tokens)
			continue
		}
		for b := range parts {
			if part := tokens[b*len(tokens)/parts : (b+1)*len(tokens)/parts]; len(part) > 0 {
				add(part)
			}
		}
	}
	n, total := 0.0, 0.0
	for i := range sums {
		n += sizes[i]
		total += sums[i]
	}
	mean := total / n
	g := float64(len(sums))
	if g < 2 {
		return Estimate{Value: mean}
	}
	squares := 0.0 // a ratio's variance: of what each cluster has beyond the mean
	for i := range sums {
		d := sums[i] - mean*sizes[i]
		squares += d * d
	}
	half := z95 * math.Sqrt(g/(g-1)*squares) / n
	return between(mean, max(0, mean-half), min(1, mean+half))
}

// warn says where the assumptions of a simulated signal fail.
func (r *TokensReport) warn(log *TokenLog) {
	say := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if len(r.Models) == 1 {
		say("one model, %s, wrote every token: nothing was routed", r.Models[0])
		return
	}
	for i, t := range r.Runs {
		if t == nil {
			continue
		}
		if t.P < reject && t.worth() {
			say("runs of %s are not geometric: their variance is %.2f times that of a geometric law of the same "+
				"mean (p = %.1g)", r.Models[i], t.RunTest.Index(), t.P)
		}
	}
	if p := r.phaseTest(); p < reject {
		lo, hi := 1.0, 0.0
		for _, w := range r.Phases {
			lo, hi = min(lo, w.Rate.Value), max(hi, w.Rate.Value)
		}
		say("the rate of %s drifts over the output, from %.1f to %.1f %% a window (p = %.1g): one rate for all "+
			"positions doesn't hold (signal phases)", r.Models[len(r.Models)-1], 100*lo, 100*hi, p)
	}
	if q := r.Routing; q != nil && q.Correlation.Value < 0 {
		say("neighbouring tokens are correlated by %.3f: a signal has no negative correlation, 0 is used",
			q.Correlation.Value)
	}
	if n := len(log.Sequences); n < 10 {
		say("%d request%s: intervals hold for other tokens of the same request%[2]s, not for others", n, plural(n))
	}
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// phaseTest is the probability of windows that differ so much where all have one rate: a chi-square over those that
// expect five tokens of each kind, less the correlation's part. 1 where there are too few.
func (r *TokensReport) phaseTest() float64 {
	last := len(r.Share) - 1
	p := r.Share[last].Value
	by := r.inflation(last, p)
	chi, cells := 0.0, 0
	for _, w := range r.Phases {
		n := float64(w.Tokens)
		const fewest = 5
		if n*p < fewest || n*(1-p) < fewest {
			continue
		}
		d := w.Rate.Value - p
		chi += d * d * n / (p * (1 - p)) / by
		cells++
	}
	if cells < 2 {
		return 1
	}
	return distuv.ChiSquared{K: float64(cells - 1)}.Survival(chi)
}
