package paper

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/latency"
)

// tabled is the kernel times that a Setup names.
func tabled(text string) (latency.Model, error) {
	text, other, untabled := strings.Cut(text, " as ")
	m, tp, err := lookup(text)
	if err != nil || !untabled {
		return m, err
	}
	name, _, _ := strings.Cut(text, "@")
	like, toTP, _ := strings.Cut(other, "@")
	to, err := strconv.Atoi(toTP)
	if err != nil {
		return nil, fmt.Errorf("model %q: want MODEL@TP", other)
	}
	ratio, err := scaled(name, tp, like, to)
	return &standIn{m, ratio}, err
}

func lookup(text string) (latency.Model, int, error) {
	name, tp, ok := strings.Cut(text, "@")
	n, err := strconv.Atoi(tp)
	if !ok || err != nil {
		return nil, 0, fmt.Errorf("model %q: want MODEL@TP", text)
	}
	p, err := latency.Lookup("a100", name, n)
	if err != nil {
		return nil, 0, err
	}
	return p.New(), n, nil
}

// standIn estimates a tensor parallelism that is not tabled: each kernel's time changes with it as the same kernel's does in
// another model. For models that are tabled both ways, batch 1 and 4, this is 2.0 % off in the mean; the ratio of whole steps
// is 6.0 % off (TestStandIn).
type standIn struct {
	latency.Model
	ratio curve
}

// StepTime scales by how many tokens are fed.
func (m *standIn) StepTime(s step.Shape) time.Duration {
	return max(1, time.Duration(math.Round(float64(m.Model.StepTime(s))*m.ratio.at(float64(s.Tokens())))))
}

// curve is a function of the batch, linear between its points and constant beyond them.
type curve struct{ x, y []float64 }

func (c curve) at(x float64) float64 {
	for i := 1; i < len(c.x); i++ {
		if x <= c.x[i] {
			u := max(0, (x-c.x[i-1])/(c.x[i]-c.x[i-1]))
			return c.y[i-1] + u*(c.y[i]-c.y[i-1])
		}
	}
	return c.y[len(c.y)-1]
}

// parts.csv has the kernels of a decode step at a context of 1,024, ms, A100, bf16, by model, tensor parallelism and batch:
// the vLLM tables of ai-dynamo/aiconfigurator (NVIDIA, Apache-2.0), composed as models/latency/profiles/README.md says.
//
//go:embed parts.csv
var partsCSV string

// kernel times of one decode step, ms, in the order of the columns of parts.csv.
type kernels [8]float64

const allReduce = 6 // there is none on one GPU

func (k kernels) sum() (ms float64) {
	for _, x := range k {
		ms += x
	}
	return ms
}

type partsKey struct {
	model     string // canonical
	tp, batch int
}

// tabledParts reads parts.csv, and the batches in their order.
var tabledParts = sync.OnceValues(func() (map[partsKey]kernels, error) { return readParts(partsCSV) })

func readParts(text string) (map[partsKey]kernels, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("parts.csv: %w", err)
	}
	parts := map[partsKey]kernels{}
	for i, line := range lines[1:] {
		card, err := models.Lookup(line[0])
		if err != nil {
			return nil, fmt.Errorf("parts.csv: line %d: %w", i+2, err)
		}
		var number [10]float64 // tp, batch and the kernels
		for j := range number {
			if number[j], err = strconv.ParseFloat(line[j+1], 64); err != nil {
				return nil, fmt.Errorf("parts.csv: line %d: %w", i+2, err)
			}
		}
		parts[partsKey{card.Name, int(number[0]), int(number[1])}] = kernels(number[2:])
	}
	return parts, nil
}

// batches are those of every model in parts.csv.
var batches = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}

// scaled is how much a step of a model changes from its tensor parallelism to another, by batch, if each kernel changes as it
// does in the model like.
func scaled(model string, tp int, like string, to int) (curve, error) {
	parts, err := tabledParts()
	if err != nil {
		return curve{}, err
	}
	own, err := models.Lookup(model)
	if err != nil {
		return curve{}, err
	}
	other, err := models.Lookup(like)
	if err != nil {
		return curve{}, err
	}
	var c curve
	for _, batch := range batches {
		base, ok1 := parts[partsKey{own.Name, tp, batch}]
		before, ok2 := parts[partsKey{other.Name, tp, batch}]
		after, ok3 := parts[partsKey{other.Name, to, batch}]
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		c.x = append(c.x, float64(batch))
		c.y = append(c.y, estimate(base, before, after, float64(own.Layers)/float64(other.Layers)).sum()/base.sum())
	}
	if c.x == nil {
		return curve{}, fmt.Errorf("%s on TP %d as %s on TP %d: not in parts.csv", model, tp, like, to)
	}
	return c, nil
}

// estimate is base with each kernel changed as from before to after. One that base doesn't have, the all-reduce, goes by layers.
func estimate(base, before, after kernels, layers float64) kernels {
	for i := range base {
		switch {
		case before[i] > 0:
			base[i] *= after[i] / before[i]
		case i == allReduce:
			base[i] = after[i] * layers
		}
	}
	return base
}
