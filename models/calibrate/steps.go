package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
)

// Options are how a log is fitted. The zero value is the default.
type Options struct {
	// Law is latency.KindAffine (the default) or latency.KindTable.
	Law latency.Kind
	// Host is the part of each step that the host spends, already in the durations; it is split off the law's bases,
	// which no log of durations can do by itself.
	Host time.Duration
	// HostGaps says that the durations are without the host's part: it is the median gap between steps that follow on.
	HostGaps bool
	// Contention is kappa: while a step of another model ran, a step was 1 + Contention times slower. It is taken out
	// before the fit.
	Contention float64
	// States is the most states of the residual's chain: 1 to 4; 0 means 4.
	States int
	// Window is the tokens of a window of a phase profile; 0 means 256.
	Window int
}

// ErrOptions is the kind of options that make no sense, or not with this log. A command that meets it exits 2.
var ErrOptions = errors.New("calibrate")

func optionsErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
}

// resolved fills in defaults.
func (o Options) resolved() (Options, error) {
	if o.Law == "" {
		o.Law = latency.KindAffine
	}
	if o.States == 0 {
		o.States = maxStates
	}
	if o.Window == 0 {
		o.Window = 256
	}
	switch {
	case o.Law != latency.KindAffine && o.Law != latency.KindTable:
		return o, optionsErrorf("law %q: want %s or %s", o.Law, latency.KindAffine, latency.KindTable)
	case o.States < 1 || o.States > maxStates:
		return o, optionsErrorf("%d states: want 1 to %d", o.States, maxStates)
	case o.Window < 1 || o.Window > maxTokens:
		return o, optionsErrorf("a window of %d tokens: want 1 to %d", o.Window, maxTokens)
	case !(o.Contention >= 0 && o.Contention <= 100):
		return o, optionsErrorf("contention %g: want 0 to 100", o.Contention)
	case o.Host < 0:
		return o, optionsErrorf("host time of %v: want 0 or more", o.Host)
	case o.Host > 0 && o.HostGaps:
		return o, optionsErrorf("host time is both %v and taken from gaps: want one of them", o.Host)
	}
	return o, nil
}

// StepsReport is what a step log says.
type StepsReport struct {
	File   string         `json:"file"`
	Models []*ModelReport `json:"models"`
	// Modulation is one chain for all models, as a run has one: each of its subservers goes through it by itself.
	Modulation *ChainReport `json:"modulation"`
	Warnings   []string     `json:"warnings"`
}

// ModelReport is one model's law and residual.
type ModelReport struct {
	Model        string        `json:"model"`
	Steps        int           `json:"steps"`
	Unknown      int           `json:"unknown_shape"` // of which the log doesn't tell decodes from extends
	Law          latency.Kind  `json:"law"`
	HostMS       float64       `json:"host_ms"`
	Coefficients []Coefficient `json:"affine"` // of latency.Affine; null where the law is a table
	Table        *TableReport  `json:"table"`  // null where the law is affine
	Covers       Cover         `json:"covers"`
	Error        ErrorReport   `json:"error"`
	GapMS        *GapReport    `json:"gap"` // null where no step follows on another
	Overlap      float64       `json:"overlap"`
	Chain        *ChainReport  `json:"residual"`
	Warnings     []string      `json:"warnings"`

	file   string // part of its files' names, unlike the other models'
	affine latency.Affine
	table  latency.Steps
	trace  trace
}

// Coefficient is one of latency.Affine's. Told is false where the log doesn't tell it from the others: it is 0 then.
type Coefficient struct {
	Name string `json:"name"`
	Estimate
	Told bool `json:"told"`
}

// TableReport is a table's points.
type TableReport struct {
	Decode  []TablePoint `json:"decode"`
	Prefill []TablePoint `json:"prefill"`
}

// TablePoint is one point of a table.
type TablePoint struct {
	Batch         int      `json:"batch,omitempty"`
	ContextTokens int      `json:"context_tokens,omitempty"`
	Tokens        int      `json:"tokens,omitempty"` // of a prefill
	StepMS        Estimate `json:"step_ms"`
	Steps         float64  `json:"steps"` // around it: the sum of their weights; 0 means the affine law's word
}

// empty counts the points without a step near.
func (t *TableReport) empty() (n, all int) {
	for _, p := range slices.Concat(t.Decode, t.Prefill) {
		all++
		if p.Steps < .5 {
			n++
		}
	}
	return n, all
}

// Range is the least, the median and the most of a count.
type Range struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Cover is what the log holds: beyond it the law is a guess. Null where there is none such.
type Cover struct {
	Decodes        int    `json:"decode_steps"`
	Extends        int    `json:"extend_steps"`
	Mixed          int    `json:"mixed_steps"`
	Batch          *Range `json:"batch"`          // of steps with decodes
	ContextTokens  *Range `json:"context_tokens"` // mean of the decodes
	ExtendTokens   *Range `json:"extend_tokens"`  // fed by the extends of a step
	resumed, whole int
}

// ErrorReport is how far the law is from the steps, as fractions of each step's time. A step's prediction is the law
// times the chain's mean multiplier.
type ErrorReport struct {
	Mean       float64 `json:"mean_abs"`
	P99        float64 `json:"p99_abs"`
	Max        float64 `json:"max_abs"`
	Bias       float64 `json:"bias"` // of the sum of all steps: predicted / measured - 1
	GivenState float64 `json:"mean_abs_given_state"`
	// HeldOut is the mean error on the last fifth of the steps of a law fitted to those before; null where there are
	// none.
	HeldOut     results.Float `json:"held_out_mean_abs"`
	HeldOutBias results.Float `json:"held_out_bias"`
}

// GapReport is the gaps between steps of a model that follow on: the same batch, one token further.
type GapReport struct {
	MedianMS float64 `json:"median_ms"`
	Pairs    int     `json:"pairs"`
}

// FitSteps fits a law and a chain to each model of a step log, and one chain to all. It ends early, with ctx's error,
// if ctx does.
func FitSteps(ctx context.Context, log *StepLog, o Options) (*StepsReport, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	if len(log.Steps) == 0 {
		return nil, &DataError{File: log.File, Msg: "holds no step"}
	}
	r := &StepsReport{File: log.File, Warnings: []string{}}
	overlap := overlaps(log)
	var x [][]float64
	least, apart := leastSpread, 0.0
	for m := range log.Models {
		f := newModelFit(log, m, overlap, &o)
		if err := f.run(ctx); err != nil {
			return nil, err
		}
		f.report.file = fileName(f.report.Model)
		if slices.ContainsFunc(r.Models, func(m *ModelReport) bool { return m.file == f.report.file }) {
			f.report.file += fmt.Sprintf("-%d", m)
		}
		r.Models = append(r.Models, f.report)
		x = append(x, f.joint.x[0])
		least = max(least, f.least)
		apart += chainBIC(f.joint.log, f.joint.chain.states(), f.joint.observed)
	}
	r.Modulation = r.Models[0].Chain
	together := apart
	if len(r.Models) > 1 {
		j, all, err := pooled(ctx, x, o.States, least)
		if err != nil {
			return nil, err
		}
		if r.Modulation, err = j.report(ctx, all); err != nil {
			return nil, err
		}
		together = chainBIC(j.log, j.chain.states(), j.observed)
	}
	r.warn(together > apart)
	return r, nil
}

// pooled fits one chain to the residuals of all models.
func pooled(ctx context.Context, x [][]float64, most int, least float64) (*joint, []Candidate, error) {
	return fitStates(ctx, x, most, least, nil, func(c *chain, n int) *joint {
		return &joint{x: heads(x, n), chain: c.clone(), least: least}
	})
}

// modelFit is the work on one model.
type modelFit struct {
	file    string
	options *Options
	log     []*Step
	steps   []observation
	overlap []float64 // share of the step
	least   float64   // spread
	joint   *joint
	law     law
	chance  float64 // standard error of the held-out bias, as the chain alone gives
	report  *ModelReport
}

func newModelFit(log *StepLog, model int, overlap []time.Duration, o *Options) *modelFit {
	f := &modelFit{file: log.File, options: o, report: &ModelReport{Model: log.Models[model], Law: o.Law,
		Warnings: []string{}}}
	var durations []float64
	for i := range log.Steps {
		s := &log.Steps[i]
		if s.Model != model {
			continue
		}
		f.log = append(f.log, s)
		share := float64(overlap[i]) / float64(s.Duration)
		f.overlap = append(f.overlap, share)
		f.report.Overlap += share
		work := alone(s.Duration, overlap[i], o.Contention)
		ob := observation{shape: s.Shape, log: math.NaN()}
		if s.Split {
			ob.log = math.Log(work)
			durations = append(durations, work)
		} else {
			f.report.Unknown++
		}
		f.steps = append(f.steps, ob)
	}
	f.report.Steps = len(f.steps)
	f.report.Overlap /= float64(len(f.steps))
	f.least = leastSpread
	if len(durations) > 0 { // rounding is uniform over the last digit
		f.least = max(f.least, float64(log.Resolution)/math.Sqrt(12)/quantile(durations, .5))
	}
	return f
}

// fewest is how many steps of known shape a fit wants: with fewer the intervals, which hold for many, say nothing.
const fewest = 20

func (f *modelFit) run(ctx context.Context) error {
	known := f.report.Steps - f.report.Unknown
	if known < fewest {
		return &DataError{File: f.file, Msg: fmt.Sprintf("model %s has %d steps whose shape is known, wanted at least %d "+
			"(columns decodes, decode_context_tokens, extend_work)", quoted(f.report.Model), known, fewest)}
	}
	laws := fitAffine(f.steps)
	fit := f.fitAffine
	if f.options.Law == latency.KindTable {
		fit = f.fitTable
	}
	if err := fit(ctx, laws); err != nil {
		return err
	}
	f.covers()
	if err := f.errors(); err != nil {
		return err
	}
	f.report.trace = f.draw()
	f.report.warn(f)
	return nil
}

// fitAffine fits an affine law and the chain together.
func (f *modelFit) fitAffine(ctx context.Context, laws []affine) error {
	x := residuals(f.steps, &laws[0], nil)
	j, all, err := fitStates(ctx, [][]float64{x}, f.options.States, f.least, laws[1:], func(c *chain, n int) *joint {
		return newJoint(f.steps[:min(n, len(f.steps))], laws[0], c.clone(), f.least)
	})
	if err != nil {
		return err
	}
	f.joint = j
	c, err := j.covariance(ctx)
	if err != nil {
		return err
	}
	f.report.Chain = j.reportWith(c, all)
	law := j.law.scaled(f.smear())
	f.law = &law
	host, err := f.host(law[c0])
	if err != nil {
		return err
	}
	f.coefficients(&law, c, host)
	return nil
}

// fitTable fits a table and the chain in turn, from an affine law.
func (f *modelFit) fitTable(ctx context.Context, laws []affine) error {
	if err := f.tabulate(ctx, &laws[0]); err != nil {
		return err
	}
	t := f.law.(*tabled)
	least := slices.Min(t.steps.Prefill.StepMS)
	for _, row := range t.steps.Decode.StepMS {
		least = min(least, slices.Min(row))
	}
	host, err := f.host(least * 1e6)
	if err != nil {
		return err
	}
	f.report.table = t.withoutHost(host)
	return nil
}

// smear turns the law of logarithms into the mean's: the mean of a log-normal step is above its median.
func (f *modelFit) smear() float64 {
	s := f.joint.chain.left
	return math.Exp(s * s / 2)
}

// host is the host's part of a law whose shortest step takes so many ns; ns.
func (f *modelFit) host(shortest float64) (float64, error) {
	f.report.GapMS = gaps(f.log)
	o := f.options
	switch {
	case o.HostGaps && f.report.GapMS == nil:
		return 0, optionsErrorf("host time from gaps: too few decode steps of %s follow on another", f.report.Model)
	case o.HostGaps:
		f.report.HostMS = f.report.GapMS.MedianMS
		return 0, nil // it isn't in the durations
	case o.Host > 0 && float64(o.Host) >= shortest:
		return 0, optionsErrorf("host time of %v: a whole step of %s may take %.4g ms", o.Host, f.report.Model,
			shortest/1e6)
	}
	f.report.HostMS = float64(o.Host) / 1e6
	return float64(o.Host), nil
}

// gaps looks at steps that follow on: the same number of decodes, each one token further. Nobody waited for anything
// between them but the host. nil where they are too few for a median.
func gaps(log []*Step) *GapReport {
	var all []float64
	for i := 1; i < len(log); i++ {
		a, b := log[i-1], log[i]
		if !a.Split || !b.Split || a.Shape.Extends > 0 || b.Shape.Extends > 0 || a.Batch != b.Batch ||
			b.ContextTokens != a.ContextTokens+int64(a.Batch) {
			continue
		}
		if gap := b.Start.Sub(a.Start.Add(a.Duration)); gap >= 0 {
			all = append(all, float64(gap)/1e6)
		}
	}
	const fewest = 20
	if len(all) < fewest {
		return nil
	}
	return &GapReport{quantile(all, .5), len(all)}
}

// coefficients states the law's terms in ms, with their intervals.
func (f *modelFit) coefficients(a *affine, c *covariance, host float64) {
	const ms = 1e6
	for i, name := range termNames {
		base := 0.0
		if i == c0 || i == p0 {
			base = host
		}
		k := Coefficient{Name: name}
		k.Value = max(0, a[i]-base) / ms
		if se, ok := c.error(ofLaw, i); ok {
			k.Told = true
			half := z95 * se * f.smear()
			k.Estimate = between(k.Value, max(0, a[i]-half-base)/ms, max(0, a[i]+half-base)/ms)
		}
		f.report.Coefficients = append(f.report.Coefficients, k)
	}
	f.report.affine = a.model(host)
}

// covers says what steps there are.
func (f *modelFit) covers() {
	c := &f.report.Covers
	var batch, contexts, fed []float64
	for i := range f.steps {
		o := &f.steps[i]
		if !o.known() {
			continue
		}
		s := &o.shape
		switch {
		case s.Extends == 0:
			c.Decodes++
		case s.Decodes == 0:
			c.Extends++
		default:
			c.Mixed++
		}
		if s.Decodes > 0 {
			batch = append(batch, float64(s.Decodes))
			contexts = append(contexts, float64(s.DecodeContext)/float64(s.Decodes))
		}
		if s.Extends > 0 {
			fed = append(fed, float64(s.ExtendTokens))
			if s.ExtendContext > s.ExtendTokens {
				c.resumed++
			} else {
				c.whole++
			}
		}
	}
	c.Batch, c.ContextTokens, c.ExtendTokens = rangeOf(batch), rangeOf(contexts), rangeOf(fed)
}

func rangeOf(values []float64) *Range {
	if len(values) == 0 {
		return nil
	}
	return &Range{slices.Min(values), quantile(values, .5), slices.Max(values)}
}

// errors measures the law on the steps it was fitted to, and a law fitted to the first four fifths on the last.
func (f *modelFit) errors() error {
	e := &f.report.Error
	mean := f.report.Chain.mean()
	var all []float64
	predicted, measured, given := 0.0, 0.0, 0.0
	k := f.joint.chain.states()
	told := 0
	for t := range f.steps {
		o := &f.steps[t]
		if !o.known() {
			continue
		}
		time, law := math.Exp(o.log), f.law.time(&o.shape)
		predicted += law * mean
		measured += time
		all = append(all, math.Abs(law*mean/time-1))
		if at := t * k; at < len(f.joint.post[0].gamma) {
			m := 0.0
			for s, g := range f.joint.post[0].gamma[at : at+k] {
				m += g * math.Exp(f.joint.chain.mu[s])
			}
			given += math.Abs(law*m/time - 1)
			told++
		}
	}
	e.Mean, e.P99, e.Max = average(all), quantile(all, .99), slices.Max(all)
	e.Bias = predicted/measured - 1
	e.GivenState = given / float64(told)

	train, test := f.steps[:len(f.steps)*4/5], f.steps[len(f.steps)*4/5:]
	other, err := f.lawOf(train)
	if err != nil {
		return err
	}
	sumLaw, sumTime := 0.0, 0.0
	for i := range train {
		if o := &train[i]; o.known() {
			sumLaw += other.time(&o.shape)
			sumTime += math.Exp(o.log)
		}
	}
	if sumLaw == 0 {
		return nil
	}
	all = all[:0]
	predicted, measured = 0, 0
	for i := range test {
		if o := &test[i]; o.known() {
			time, law := math.Exp(o.log), other.time(&o.shape)*sumTime/sumLaw
			all = append(all, math.Abs(law/time-1))
			predicted += law
			measured += time
		}
	}
	e.HeldOut, e.HeldOutBias = results.F(average(all)), results.F(predicted/measured-1)
	f.chance = f.wander()
	return nil
}

// lawOf fits a law of the same kind to other steps, without a chain.
func (f *modelFit) lawOf(steps []observation) (law, error) {
	a := fitAffine(steps)[0]
	if f.options.Law != latency.KindTable {
		return &a, nil
	}
	steps = steps[:min(len(steps), tableSteps)]
	g := newGrid(f.report.Model, steps, &a)
	if err := g.fit(steps, make([]float64, len(steps)), 0); err != nil {
		return nil, err
	}
	return g.build(-1, 0)
}

// wander is the standard error of the mean of a fifth of the log against that of the rest, from the means of 40 blocks:
// a chain that lingers makes them differ though nothing has changed.
func (f *modelFit) wander() float64 {
	const parts = blocks / 5
	var means []float64
	for b := range blocks {
		var values []float64
		for t := b * len(f.steps) / blocks; t < (b+1)*len(f.steps)/blocks; t++ {
			if o := &f.steps[t]; o.known() {
				values = append(values, math.Exp(o.log)/f.law.time(&o.shape))
			}
		}
		if len(values) > 0 {
			means = append(means, average(values))
		}
	}
	return math.Sqrt(variance(means)*(1./parts+1./(blocks-parts))) / average(means)
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// trace is what a picture of the residual shows: a step each, at most a few thousand.
type trace struct {
	at                  []float64 // number of the step
	predicted, measured []float64 // ms; the law alone, and the step
	context             []float64 // mean over the rows, tokens
	extends             []bool
	residual            []float64 // measured / law
	smooth              []float64 // running mean of it
}

// drawn is how many steps a picture shows at most.
const drawn = 1500

func (f *modelFit) draw() trace {
	var tr trace
	type dot struct {
		at       int
		time, f  float64
		smoothed float64
	}
	x := make([]float64, len(f.steps))
	for t := range f.steps {
		x[t] = math.NaN()
		if o := &f.steps[t]; o.known() {
			x[t] = math.Exp(o.log) / f.law.time(&o.shape)
		}
	}
	smooth := smoothed(x, max(9, len(x)/100))
	var dots []dot
	for t := range x {
		if o := &f.steps[t]; o.known() {
			dots = append(dots, dot{t, math.Exp(o.log), f.law.time(&o.shape), smooth[t]})
		}
	}
	for _, d := range thin(dots, drawn) {
		s := &f.steps[d.at].shape
		tr.at = append(tr.at, float64(d.at))
		tr.predicted, tr.measured = append(tr.predicted, d.f/1e6), append(tr.measured, d.time/1e6)
		tr.context = append(tr.context, float64(s.DecodeContext+s.ExtendContext)/float64(s.Seqs()))
		tr.extends = append(tr.extends, s.Extends > 0)
		tr.residual, tr.smooth = append(tr.residual, d.time/d.f), append(tr.smooth, d.smoothed)
	}
	return tr
}
