package latency

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/suggest"
)

// ModulationSchema names the format of a modulation file:
//
//	schema: trbench.modulation/1
//	source: a noisy neighbour             # optional: where the numbers come from
//	origin: assumed                       # or measured, fitted, article, paper; assumed is the default
//	normalise: true                       # optional: divide the multipliers by their mean
//	states:
//	  - {name: quiet, multiplier: 1}      # the chain begins in the first
//	  - {name: busy, multiplier: 1.8}
//	transition:                           # from row to column, a step; rows sum to 1
//	  - [0.99, 0.01]
//	  - [0.2, 0.8]
const ModulationSchema = "trbench.modulation/1"

const (
	maxStates     = 64
	maxMultiplier = 1e6
	rowTolerance  = 1e-9 // how far a row may be from summing to 1
)

// ModulationConfig is a modulation as a file or a program states it.
type ModulationConfig struct {
	Schema string `yaml:"schema"`
	Source string `yaml:"source,omitempty"`
	Origin Origin `yaml:"origin,omitempty"` // empty means Assumed

	// Normalise divides the multipliers by their mean over the chain's stationary distribution, so that steps are as long
	// on average as without modulation. Otherwise the multipliers stand as given and the mean step changes by Mean.
	Normalise  bool              `yaml:"normalise,omitempty"`
	States     []ModulationState `yaml:"states"`
	Transition [][]float64       `yaml:"transition"`
}

// ModulationState is a state of the chain.
type ModulationState struct {
	Name       string  `yaml:"name,omitempty"`
	Multiplier float64 `yaml:"multiplier"` // of the step time
}

// Modulation multiplies step times by the state of a Markov chain that moves once a step: slow spells that last, as
// neighbours, clocks and garbage collection cause them. It is immutable.
type Modulation struct {
	name, label string
	multiplier  []float64
	upTo        [][]float64 // cumulative transition probabilities, by row
	mean        float64
	ergodic     bool
}

// NewModulation prepares a modulation; name stands in results. It fails on a matrix that isn't square and
// row-stochastic, on a multiplier that isn't positive, and on Normalise for a chain that has more than one stationary
// distribution.
func NewModulation(name string, c ModulationConfig) (*Modulation, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Modulation{name: name}
	for i, s := range c.States {
		m.multiplier = append(m.multiplier, s.Multiplier)
		sum, row := 0.0, make([]float64, len(c.States))
		for j, p := range c.Transition[i] {
			sum += p
			row[j] = sum
		}
		for j := len(row) - 1; j >= 0; j-- { // rounding must not let a draw fall off the end
			row[j] = 1
			if c.Transition[i][j] > 0 {
				break
			}
		}
		m.upTo = append(m.upTo, row)
	}
	stationary, ergodic := stationary(c.Transition)
	m.mean, m.ergodic = 1, ergodic
	if ergodic {
		m.mean = 0
		for i, p := range stationary {
			m.mean += p * m.multiplier[i]
		}
	}
	if c.Normalise {
		if !ergodic {
			return nil, fieldErrorf("normalise", "is true, but the chain has more than one set of states that it never "+
				"leaves: which of them it ends in decides the mean")
		}
		for i := range m.multiplier {
			m.multiplier[i] /= m.mean
		}
		m.mean = 1
	}
	origin := c.Origin
	if origin == "" {
		origin = Assumed
	}
	m.label = string(origin) + ": " + name
	if c.Source != "" {
		m.label += ", " + c.Source
	}
	return m, nil
}

func (c ModulationConfig) check() error {
	if c.Schema != ModulationSchema {
		return fieldErrorf("schema", "is %q, wanted %s", c.Schema, ModulationSchema)
	}
	if c.Origin != "" {
		if err := c.Origin.check(); err != nil {
			return err
		}
	}
	n := len(c.States)
	if n < 1 || n > maxStates {
		return fieldErrorf("states", "has %d states, wanted 1 to %d", n, maxStates)
	}
	for i, s := range c.States {
		if !(s.Multiplier > 0 && s.Multiplier <= maxMultiplier) {
			return fieldErrorf(index("states", i)+".multiplier", "is %g, wanted above 0 and at most %g",
				s.Multiplier, float64(maxMultiplier))
		}
	}
	if len(c.Transition) != n {
		return fieldErrorf("transition", "has %d rows, wanted %d, one for each state", len(c.Transition), n)
	}
	for i, row := range c.Transition {
		if len(row) != n {
			return fieldErrorf(index("transition", i), "has %d values, wanted %d, one for each state", len(row), n)
		}
		sum := 0.0
		for j, p := range row {
			if !(p >= 0 && p <= 1+rowTolerance) {
				return fieldErrorf(index(index("transition", i), j), "is %g, wanted a probability", p)
			}
			sum += p
		}
		if math.Abs(sum-1) > rowTolerance {
			return fieldErrorf(index("transition", i), "sums to %.10g, wanted 1 (within %g)", sum, rowTolerance)
		}
	}
	return nil
}

// None leaves steps as they are.
func None() *Modulation {
	return &Modulation{name: "none", label: "none", multiplier: []float64{1}, upTo: [][]float64{{1}}, mean: 1,
		ergodic: true}
}

// Jitter is a preset, assumed and not measured: 97 % of steps at their usual length, the others 1.6 times as long in
// stalls of three steps on average. It lengthens the mean step by 1.8 %.
func Jitter() *Modulation {
	const stalled, length = .03, 3.0
	begin := stalled / length / (1 - stalled) // so many stalls begin as end
	m, err := NewModulation("jitter", ModulationConfig{
		Schema:     ModulationSchema,
		Source:     "3 % of steps take 1.6 times as long, in stalls of 3 steps",
		Origin:     Assumed,
		States:     []ModulationState{{"usual", 1}, {"stalled", 1.6}},
		Transition: [][]float64{{1 - begin, begin}, {1 / length, 1 - 1/length}},
	})
	if err != nil {
		panic(err) // the numbers above
	}
	return m
}

// ModulationNames lists the presets.
func ModulationNames() []string {
	return append([]string{"none", "jitter"}, presets(modulationPreset)...)
}

// ParseModulation resolves a preset's name, case ignored, or the path of a modulation file; "" means none. An unknown
// name is an error that gives the nearest known one.
func ParseModulation(spec string) (*Modulation, error) {
	switch strings.ToLower(strings.TrimSpace(spec)) {
	case "", "none":
		return None(), nil
	case "jitter":
		return Jitter(), nil
	}
	if m := presetModulation(strings.ToLower(strings.TrimSpace(spec))); m != nil {
		return m, nil
	}
	if isFile(spec) {
		f, err := os.Open(spec)
		if err != nil {
			return nil, fmt.Errorf("modulation file: %w", err)
		}
		defer f.Close()
		return ReadModulation(spec, f)
	}
	all := fmt.Sprintf("(%s or a YAML file)", strings.Join(ModulationNames(), ", "))
	if near, ok := suggest.Nearest(spec, ModulationNames()); ok {
		return nil, fmt.Errorf("unknown modulation %q: did you mean %s? %s", spec, near, all)
	}
	return nil, fmt.Errorf("unknown modulation %q %s", spec, all)
}

// ReadModulation reads a modulation file; name stands in errors, which give the line and field.
func ReadModulation(name string, r io.Reader) (*Modulation, error) {
	var c ModulationConfig
	doc, err := readYAML(name, r, &c)
	if err != nil {
		return nil, err
	}
	m, err := NewModulation("file "+filepath.Base(name), c)
	if err != nil {
		return nil, doc.trace(err)
	}
	return m, nil
}

// Name is the preset's or the file's.
func (m *Modulation) Name() string { return m.name }

// Label is the name and how the numbers were come by, for results.
func (m *Modulation) Label() string { return m.label }

// Mean is the mean multiplier over the chain's stationary distribution, and false where there is more than one such
// distribution.
func (m *Modulation) Mean() (float64, bool) { return m.mean, m.ergodic }

// Over puts the modulation over a model. The chain begins in its first state and moves before each later step; its
// draws are keyed by seed, subserver and step, so that they repeat, and owe nothing to other subservers.
func (m *Modulation) Over(base Model, seed uint64, subserver step.ModelID) Model {
	if len(m.multiplier) == 1 && m.multiplier[0] == 1 {
		return base
	}
	return &Modulated{base: base, modulation: m, key: mix(mix(seed) + uint64(subserver) + 1)}
}

// Modulated is a model under a Modulation. Each StepTime moves the chain: it is asked once for each step that runs.
type Modulated struct {
	base       Model
	modulation *Modulation
	key        uint64
	step       uint64 // steps priced so far
	state      int
}

// StepTime is the base's, times the chain's state.
func (m *Modulated) StepTime(s step.Shape) time.Duration {
	if m.step > 0 {
		m.state = m.next()
	}
	m.step++
	return duration(float64(m.base.StepTime(s)) * m.modulation.multiplier[m.state])
}

// next draws the chain's next state.
func (m *Modulated) next() int {
	u := float64(mix(m.key+m.step)>>11) / (1 << 53) // in [0, 1)
	row := m.modulation.upTo[m.state]
	return slices.IndexFunc(row, func(p float64) bool { return u < p })
}

// Extrapolated returns the base's warnings.
func (m *Modulated) Extrapolated() []string { return Extrapolated(m.base) }

// mix scrambles a counter into 64 random bits: the output function of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// stationary is the stationary distribution of a chain that has one set of states that it can't leave; false where it
// has several. States that the chain leaves for good have probability 0.
func stationary(transition [][]float64) ([]float64, bool) {
	class, ok := closedClass(transition)
	if !ok {
		return nil, false
	}
	// Grassmann, Taksar and Heyman: eliminate the states from the last; nothing is subtracted, so nothing cancels.
	n := len(class)
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n)
		for j := range a[i] {
			a[i][j] = transition[class[i]][class[j]]
		}
	}
	for k := n - 1; k > 0; k-- {
		leave := 0.0
		for j := range k {
			leave += a[k][j]
		}
		for i := range k {
			a[i][k] /= leave
			for j := range k {
				a[i][j] += a[i][k] * a[k][j]
			}
		}
	}
	weight, total := make([]float64, n), 1.0
	weight[0] = 1
	for k := 1; k < n; k++ {
		for i := range k {
			weight[k] += weight[i] * a[i][k]
		}
		total += weight[k]
	}
	out := make([]float64, len(transition))
	for i, w := range weight {
		out[class[i]] = w / total
	}
	return out, true
}

// closedClass returns the states of the one set that the chain can't leave once in it, in order; false where there are
// several such sets.
func closedClass(transition [][]float64) ([]int, bool) {
	n := len(transition)
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
		for j, p := range transition[i] {
			reach[i][j] = p > 0 || i == j
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	var class []int
	for i := range n {
		recurrent := true
		for j := range n {
			recurrent = recurrent && (!reach[i][j] || reach[j][i])
		}
		if !recurrent {
			continue
		}
		if len(class) > 0 && !reach[i][class[0]] {
			return nil, false
		}
		class = append(class, i)
	}
	return class, true
}
