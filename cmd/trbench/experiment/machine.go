package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/calibrate"
	"github.com/trbench/trbench/models/latency"
)

// machine is how long steps take in the prediction of a round, by model, fresh for one run.
type machine func(round int) []latency.Model

// replay goes along the round's part of the log.
func (t *trial) replay(fit *calibrate.StepsReport, kappa float64) (machine, error) {
	alone := calibrate.Alone(t.log, kappa)
	models, err := t.logged()
	if err != nil {
		return nil, err
	}
	logs := make([][]*latency.Log, t.rounds)
	for _, m := range models {
		for round, steps := range t.split(alone[m]) {
			if len(steps) == 0 { // it had no step in this round
				steps = alone[m]
			}
			l, err := latency.NewLog(fit.Models[m].Affine(), steps)
			if err != nil {
				return nil, err
			}
			logs[round] = append(logs[round], l)
		}
	}
	return func(round int) (steps []latency.Model) {
		for _, l := range logs[round] {
			steps = append(steps, l.New())
		}
		return steps
	}, nil
}

// split cuts a model's steps into the calibration runs, and lets the clock of each begin with it.
func (t *trial) split(steps []latency.Timed) [][]latency.Timed {
	out := make([][]latency.Timed, t.rounds)
	round := 0
	for _, s := range steps {
		for round+1 < t.rounds && s.At >= t.starts[round+1] {
			round++
		}
		s.At = clock.Instant(s.At.Sub(t.starts[round]))
		out[round] = append(out[round], s)
	}
	return out
}

// fitted is each model's affine law under its own chain.
func (t *trial) fitted(fit *calibrate.StepsReport) (machine, error) {
	models, err := t.logged()
	if err != nil {
		return nil, err
	}
	var chains []*latency.Modulation
	for _, m := range models {
		chain, err := latency.NewModulation("fitted", fit.Models[m].ModulationFile())
		if err != nil {
			return nil, err
		}
		chains = append(chains, chain)
	}
	return func(round int) (steps []latency.Model) {
		for i, m := range models {
			steps = append(steps, chains[i].Over(fit.Models[m].Affine(), uint64(round), step.ModelID(i)))
		}
		return steps
	}, nil
}

// logged is where the log has each model: it lists them as they first ran.
func (t *trial) logged() (models []int, err error) {
	for _, c := range t.plan.serving(t.point) {
		i := slices.Index(t.log.Models, c.Name)
		if i < 0 {
			return nil, fmt.Errorf("%s ran no step: the simulator has nothing to be fitted to", c.Name)
		}
		models = append(models, i)
	}
	return models, nil
}

// waker is how long wake-ups take: what those of the same subserver took, beside a working one or not, in the round's
// calibration run, in those after it, and from the start again; any, where there were none such. nil where nothing ever
// slept.
func (t *trial) waker(round int) func(step.ModelID, bool) time.Duration {
	all := slices.Concat(slices.Concat(t.woken[round:], t.woken[:round])...)
	if len(all) == 0 {
		return nil
	}
	like := map[woken][]wake{}
	for _, w := range all {
		like[w.of] = append(like[w.of], w)
	}
	next := map[woken]int{}
	return func(m step.ModelID, beside bool) time.Duration {
		of := woken{m, beside}
		list := like[of]
		if len(list) == 0 {
			list = all
		}
		i := next[of] % len(list)
		next[of]++
		return list[i].took
	}
}

// wakes is how many wake-ups the calibration runs had, and their mean time.
func (t *trial) wakes() (n int, each time.Duration) {
	for _, run := range t.woken {
		for _, w := range run {
			each += w.took
			n++
		}
	}
	return n, each / time.Duration(max(1, n))
}
