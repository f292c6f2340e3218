package models

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// DefaultMemoryShare is the part of a GPU's memory that weights and KV may fill: vLLM's default
	// gpu_memory_utilization.
	DefaultMemoryShare = 0.9

	// MinKVTokens is the least KV capacity that DefaultDeployment accepts: one request of 8,192 tokens.
	MinKVTokens = 8192

	// maxAdvisedTP bounds the tensor parallelism that an error proposes.
	maxAdvisedTP = 64
)

// Deployment says which GPUs hold which model. Shared: model i runs on GPUs 0..TP[i]-1, so that GPU 0 holds a shard of
// every model. Separate: each model has TP[i] GPUs of its own.
type Deployment struct {
	GPU         GPU
	GPUs        int   // how many there are; at least Needed
	TP          []int // tensor parallelism by model: the GPUs that its weights are split over
	Shared      bool
	MemoryShare float64 // of each GPU's memory, for weights and KV, in (0, 1]; 0 means DefaultMemoryShare
}

// Needed is the number of GPUs that the models occupy.
func (d Deployment) Needed() int {
	needed := 0
	for _, tp := range d.TP {
		if d.Shared {
			needed = max(needed, tp)
		} else {
			needed += tp
		}
	}
	return needed
}

// Only is the deployment of model i by itself, on the GPUs and with the TP that it has here: a single-model system to
// compare with.
func (d Deployment) Only(i int) Deployment {
	d.TP = slices.Clone(d.TP[i : i+1])
	return d
}

// FitError reports models that do not fit into a GPU's memory, with the sum.
type FitError struct {
	GPU         string
	Index       int // the first GPU where they don't fit
	Models      []string
	TP          []int
	ShardBytes  []int64 // of weights, by model
	UsableBytes int64
	MemoryShare float64
	Advice      string // what would help
}

func (e *FitError) Error() string {
	var who, parts []string
	var sum int64
	for i, m := range e.Models {
		who = append(who, fmt.Sprintf("%s (TP %d)", m, e.TP[i]))
		parts = append(parts, fmt.Sprintf("%.2f", gigabytes(e.ShardBytes[i])))
		sum += e.ShardBytes[i]
	}
	need := "needs " + parts[0]
	if len(parts) > 1 {
		need = fmt.Sprintf("need %s = %.2f", strings.Join(parts, " + "), gigabytes(sum))
	}
	return fmt.Sprintf("%s %s GB on GPU %d of %s, %.2f GB usable (memory_share %g): %s",
		strings.Join(who, " + "), need, e.Index, e.GPU, gigabytes(e.UsableBytes), e.MemoryShare, e.Advice)
}

func gigabytes(bytes int64) float64 { return float64(bytes) / 1e9 }

// KVTokens is the joint KV budget: the largest token capacity that every model can have at once. On each GPU, summed
// over the models there, it satisfies
//
//	weights/TP + tokens * kv_bytes/TP <= MemoryShare * memory
//
// (paper, "Runtime": the largest common token capacity that fits all models). A model whose TP exceeds its KV heads
// holds a copy of one on each rank. Activations and the engine's own buffers are not counted: MemoryShare leaves room
// for them. Weights alone that do not fit, or leave no room for a token, are a *FitError; too few GPUs, or a TP that
// does not divide a model's heads, are errors too.
func (d Deployment) KVTokens(cards []Card) (int, error) {
	if err := d.check(cards); err != nil {
		return 0, err
	}
	if d.Shared { // GPU 0 holds all; any other holds less
		return d.room(cards, 0, len(cards), 0)
	}
	tokens, gpu := math.MaxInt, 0
	for i := range cards {
		n, err := d.room(cards, i, i+1, gpu)
		if err != nil {
			return 0, err
		}
		tokens = min(tokens, n)
		gpu += d.TP[i]
	}
	return tokens, nil
}

// check reports a deployment that makes no sense whatever the memory.
func (d Deployment) check(cards []Card) error {
	if len(cards) == 0 || len(cards) != len(d.TP) {
		return fmt.Errorf("deployment: %d models and %d TP values: one for each model wanted", len(cards), len(d.TP))
	}
	if share := d.MemoryShare; !(share >= 0 && share <= 1) {
		return fmt.Errorf("deployment: memory_share is %g, wanted above 0 and at most 1", share)
	}
	for i, c := range cards {
		if d.TP[i] < 1 || c.Heads%d.TP[i] != 0 {
			return fmt.Errorf("deployment: TP %d does not divide the %d attention heads of %s", d.TP[i], c.Heads, c.Name)
		}
	}
	if need := d.Needed(); d.GPUs < need {
		layout := "separate"
		if d.Shared {
			layout = "shared"
		}
		return fmt.Errorf("deployment: %s %s GPUs with TP %s need %d, %d given",
			layout, d.GPU.Name, joinInts(d.TP), need, d.GPUs)
	}
	return nil
}

// room is the common token capacity of the models from..to-1, which are those on the given GPU.
func (d Deployment) room(cards []Card, from, to, gpu int) (int, error) {
	e := &FitError{GPU: d.GPU.Name, Index: gpu, TP: slices.Clone(d.TP[from:to]), UsableBytes: d.usable(),
		MemoryShare: d.share()}
	left, perToken := d.usable(), int64(0)
	for i := from; i < to; i++ {
		e.Models = append(e.Models, cards[i].Name)
		e.ShardBytes = append(e.ShardBytes, shard(cards[i], d.TP[i]))
		left -= shard(cards[i], d.TP[i])
		perToken += kvShard(cards[i], d.TP[i])
	}
	if left >= perToken {
		return int(left / perToken), nil
	}
	e.Advice = d.advice(cards, to-1, left+shard(cards[to-1], d.TP[to-1]), perToken-kvShard(cards[to-1], d.TP[to-1]))
	return 0, e
}

// advice proposes the least TP of model i at which it fits with room for MinKVTokens into left bytes, where each token
// costs its peers on the GPU perToken bytes.
func (d Deployment) advice(cards []Card, i int, left, perToken int64) string {
	c := cards[i]
	for tp := 2 * d.TP[i]; tp <= maxAdvisedTP && c.Heads%tp == 0; tp *= 2 {
		if left >= shard(c, tp)+MinKVTokens*(perToken+kvShard(c, tp)) {
			if i == len(cards)-1 {
				return fmt.Sprintf("use large_tp %d", tp)
			}
			return fmt.Sprintf("use TP %d for %s", tp, c.Name)
		}
	}
	return "use GPUs with more memory"
}

func (d Deployment) share() float64 {
	if d.MemoryShare == 0 {
		return DefaultMemoryShare
	}
	return d.MemoryShare
}

// usable is the memory of one GPU for weights and KV, bytes.
func (d Deployment) usable() int64 { return int64(d.share() * float64(d.GPU.MemoryBytes)) }

// shard is the size of one rank's weights, bytes.
func shard(c Card, tp int) int64 { return (c.WeightBytes() + int64(tp) - 1) / int64(tp) }

// kvShard is the size of one token's KV on one rank, bytes: whole heads, at least one.
func kvShard(c Card, tp int) int64 { return int64((c.KVHeads+tp-1)/tp) * c.kvBytesPerHead() }

// DefaultDeployment places cards, smallest first, on as few GPUs as hold them: every model but the last on the least TP
// allowed for it, and the last, largest one on the least at which all fit with room for MinKVTokens. allowed lists the
// TPs of each model in any order (those with a latency table, or the one that the user asked for); a TP that does not
// divide a model's heads is passed over. One card alone is placed by the same rule. share 0 means DefaultMemoryShare.
//
// Where none fits, the error is that of the largest TP tried, a *FitError if the weights alone are too large.
func DefaultDeployment(gpu GPU, cards []Card, allowed [][]int, shared bool, share float64) (Deployment, error) {
	if len(cards) == 0 || len(cards) != len(allowed) {
		return Deployment{}, fmt.Errorf("deployment: %d models and %d lists of TP: one for each model wanted",
			len(cards), len(allowed))
	}
	d := Deployment{GPU: gpu, Shared: shared, MemoryShare: share, TP: make([]int, len(cards))}
	if share == 0 {
		d.MemoryShare = DefaultMemoryShare
	}
	last := len(cards) - 1
	var choices []int
	for i, c := range cards {
		choices = slices.DeleteFunc(slices.Sorted(slices.Values(allowed[i])),
			func(tp int) bool { return tp < 1 || c.Heads%tp != 0 })
		if len(choices) == 0 {
			return Deployment{}, fmt.Errorf("deployment: no usable TP for %s among (%s): wanted one that divides its "+
				"%d attention heads", c.Name, joinInts(allowed[i]), c.Heads)
		}
		d.TP[i] = choices[0]
	}
	var err error
	for _, tp := range choices {
		d.TP[last] = tp
		d.GPUs = d.Needed()
		var tokens int
		if tokens, err = d.KVTokens(cards); err != nil {
			continue
		}
		if tokens >= MinKVTokens {
			return d, nil
		}
		err = fmt.Errorf("deployment: %s with TP %s on %s leaves room for %d KV tokens, at least %d wanted",
			names(cards), joinInts(d.TP), gpu.Name, tokens, MinKVTokens)
	}
	return Deployment{}, err
}

func names(cards []Card) string {
	var names []string
	for _, c := range cards {
		names = append(names, c.Name)
	}
	return strings.Join(names, " + ")
}

func joinInts(xs []int) string {
	var s []string
	for _, x := range xs {
		s = append(s, strconv.Itoa(x))
	}
	return strings.Join(s, ", ")
}
