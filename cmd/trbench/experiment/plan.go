package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/route/starlark"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/sim"
	"github.com/trbench/trbench/workloads"
)

// Plan is a config resolved into working points: everything is looked up, read and checked, and nothing has run.
type Plan struct {
	Config     *Config
	Name       string // of the run: the preset's
	Hash       string // of what decides the results
	Pair       models.Pair
	Deployment *models.Deployment // nil where step times are whole steps: no machine is meant
	Memory     *models.Memory     // that models with weights share; nil but for --engine cpu
	Latency    *latency.Spec
	Modulation *latency.Modulation
	Contention float64
	KVTokens   int // of each model in a routed system; 0 is unlimited
	Sets       []*workloads.Set
	SLO        metrics.SLO
	Policy     Batching
	Points     []Point
	Warnings   []string

	price    []float64                 // USD an hour of a GPU: one for all, or one a model; nil: no bill
	program  *starlark.File            // of --program; nil for a built-in algorithm
	local    *Local                    // models with weights; nil but for --engine cpu
	recorded *signal.Trace             // what a replayed signal replays; nil for a drawn one
	sets     map[string]*workloads.Set // read before, by what decides them: a sweep's plans share them
}

// Point is one working point of a plan.
type Point struct {
	Index       int
	System      System
	Algorithm   string // "" for a system that runs none
	Set         *workloads.Set
	Concurrency int        // 0 in an open loop
	Table       core.Table // thresholds by active requests, lowered where needed; nil is eager
	Vector      []int      // the thresholds at Concurrency, for the record; nil is eager
}

// Batching is the delayed batching of the largest model.
type Batching struct {
	Name  string // threshold, gate:K, timer:D
	Gate  int
	Timer time.Duration
}

// NewPlan resolves a config. name is the run's, as in its folder's name.
func NewPlan(ctx context.Context, name string, c *Config) (*Plan, error) {
	p := &Plan{Config: c, Name: name, sets: map[string]*workloads.Set{}}
	return p, p.resolve(ctx)
}

func (p *Plan) resolve(ctx context.Context) error {
	for _, part := range []func() error{p.models, p.machine, p.prices, p.contention, p.routing, p.batching, p.workload} {
		if err := part(); err != nil {
			return err
		}
	}
	var err error
	if p.SLO, err = metrics.ParseSLO(p.Config.SLO); err != nil {
		return usage(err)
	}
	if err := p.expand(ctx); err != nil {
		return err
	}
	p.Hash, err = p.hash()
	return err
}

// models finds the pair.
func (p *Plan) models() error {
	c := p.Config
	if (c.Small == "") != (c.Large == "") {
		return usagef("small and large: name both models, or neither and a pair")
	}
	if c.Engine == "cpu" {
		var err error
		if p.local, err = OpenLocal(c.Small, c.Large); err != nil {
			return err
		}
		p.Pair, err = p.local.pair()
		return err
	}
	if c.Small == "" {
		var err error
		p.Pair, err = models.LookupPair(c.Pair)
		return usage(err)
	}
	var cards []models.Card
	for _, name := range []string{c.Small, c.Large} {
		card, err := models.Lookup(name)
		if err != nil {
			return usage(err)
		}
		cards = append(cards, card)
	}
	var err error
	p.Pair, err = models.NewPair(cards...)
	return usage(err)
}

// machine finds the step times, and for measured ones the deployment with its KV pool.
func (p *Plan) machine() error {
	c := p.Config
	p.Modulation = latency.None()
	if p.local != nil {
		p.Latency = p.local.machine()
		var err error
		p.KVTokens, err = p.localKV()
		return usage(err)
	}
	cards := p.Pair.Models
	tp := make([]int, len(cards))
	gpu, gpuErr := models.LookupGPU(c.Latency)
	if gpuErr == nil {
		d, err := p.deployment(gpu)
		if err != nil {
			return usage(err)
		}
		p.Deployment = &d
		tp = d.TP
		if p.KVTokens, err = d.KVTokens(cards); err != nil {
			return usage(err)
		}
	}
	spec, err := latency.Parse(c.Latency, cards, tp)
	if err != nil {
		return usage(err)
	}
	p.Latency = spec
	if c.Host != nil {
		if len(c.Host) != len(cards) {
			return usagef("host_ms: %d values for %d models", len(c.Host), len(cards))
		}
		for i, ms := range c.Host {
			p.Latency.Models[i].Host = micros(ms * 1000)
			p.Latency.Models[i].HostOrigin = latency.Assumed
		}
	}
	if c.KVTokens > 0 {
		p.KVTokens = c.KVTokens
	}
	p.Modulation, err = latency.ParseModulation(c.Modulation)
	return usage(err)
}

// deployment places the pair on GPUs: as asked for, else on as few as hold it.
func (p *Plan) deployment(gpu models.GPU) (models.Deployment, error) {
	c := p.Config
	allowed := make([][]int, len(p.Pair.Models))
	for i, card := range p.Pair.Models {
		if allowed[i] = latency.TPs(gpu.Name, card.Name); len(allowed[i]) == 0 {
			_, err := latency.Lookup(gpu.Name, card.Name, 1)
			return models.Deployment{}, err
		}
	}
	fix := func(i, tp int) {
		if tp > 0 {
			allowed[i] = []int{tp}
		}
	}
	fix(0, c.SmallTP)
	fix(len(allowed)-1, c.LargeTP)
	d, err := models.DefaultDeployment(gpu, p.Pair.Models, allowed, c.Shared, c.MemoryShare)
	if err != nil {
		return d, err
	}
	if c.GPUs > 0 {
		d.GPUs = c.GPUs
	}
	return d, nil
}

// contention resolves kappa, and refuses costs that only the simulator knows.
func (p *Plan) contention() error {
	c := p.Config
	if c.Engine != "cpu" && c.MemoryBytes > 0 {
		return usagef("deployment.memory_bytes %d: it is the memory of this machine, for --engine cpu; of a GPU's, give deployment.memory_share", c.MemoryBytes)
	}
	if c.Engine != "sim" && c.TransportUS > 0 {
		return usagef("transport_us %g: the engine runs in one process: want 0, or --engine sim", c.TransportUS)
	}
	switch {
	case c.Contention >= 0:
		p.Contention = c.Contention
	case p.local != nil:
	case p.Deployment != nil && c.Shared:
		p.Contention = latency.FittedContention
	}
	return nil
}

// routing reads a recorded signal, and checks that every algorithm can run on the models.
func (p *Plan) routing() error {
	if path, ok := strings.CutPrefix(p.Config.Signal, "replay:"); ok {
		f, err := os.Open(path)
		if err != nil {
			return &Error{ExitData, fmt.Errorf("signal: %w", err)}
		}
		defer f.Close()
		if p.recorded, err = signal.ReadTrace(path, f); err != nil {
			return &Error{ExitData, fmt.Errorf("signal: %w", err)}
		}
	}
	if path := p.Config.Program; path != "" {
		var err error
		if p.program, err = starlark.Load(path, starlark.Options{Models: len(p.Pair.Models), Seed: p.Config.Seed}); err != nil {
			return usagef("program: %w", err)
		}
		p.Config.Algorithm = []string{p.program.Name()}
	}
	for _, name := range p.Config.Algorithm {
		r, err := p.router(name)
		if err == nil && p.local != nil {
			err = localRouter(name, r)
		}
		if err != nil {
			return usage(err)
		}
	}
	return nil
}

func (p *Plan) router(name string) (route.Router, error) {
	c := p.Config
	if p.program != nil {
		return p.program.Router(), nil
	}
	o := route.Options{
		Models: len(p.Pair.Models), Threshold: c.AlgThreshold, Weights: c.Weights, Draft: c.Draft, Adaptive: c.Adaptive, Greedy: c.Greedy,
		Defer: c.Defer, Step: c.Step, Seed: c.Seed,
	}
	r, err := route.New(name, o)
	if err != nil || p.recorded == nil || c.AlgThreshold != 0 {
		return r, err
	}
	ruled, ok := r.(route.Ruled)
	if !ok || c.SwitchRate <= 0 || c.SwitchRate >= 1 {
		return r, nil
	}
	// The rule that decides: the smallest model's, or that of the first model that has one.
	var rule signal.Rule
	for m := 0; m < o.Models && !rule.Used(); m++ {
		rule = ruled.Rule(step.ModelID(m))
	}
	if !rule.Used() || rule.Uniform {
		return r, nil
	}
	if o.Threshold, err = p.recorded.Threshold(rule, c.SwitchRate); err != nil {
		return nil, err
	}
	return route.New(name, o)
}

// batching reads the batching policy.
func (p *Plan) batching() error {
	text := p.Config.Batching
	kind, value, _ := strings.Cut(text, ":")
	p.Policy = Batching{Name: text}
	switch kind {
	case "threshold":
		if value == "" {
			return nil
		}
		return usagef("batching %q: a threshold is given by its own key: batching threshold, threshold %s", text, value)
	case "gate":
		k, err := strconv.Atoi(value)
		if err != nil || k < 1 {
			return usagef("batching %q: want gate:K with a whole K of at least 1, as in gate:4", text)
		}
		p.Policy.Gate = k
		return nil
	case "timer":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return usagef("batching %q: want timer:D with a duration above 0, as in timer:5ms", text)
		}
		p.Policy.Timer = d
		return nil
	}
	return usagef("batching %q: want threshold, gate:K or timer:D", text)
}

// workload reads the request lists.
func (p *Plan) workload() error {
	c := p.Config
	o := workloads.Options{N: c.Requests, Warmup: c.Warmup, Seed: c.Seed, Sampler: c.Sampler, Replay: c.Arrival.Replays(), Tokenizer: p.tokenizer()}
	if c.Format != "auto" {
		o.Format = c.Format
	}
	names, load := c.Workload, workloads.Load
	if len(c.Data) > 0 {
		names, load = c.Data, workloads.LoadFile
	}
	if c.Chat && c.Engine != "cpu" {
		return usagef("chat: prompts are text with --engine cpu only")
	}
	if p.local != nil {
		text := len(c.Data) > 0 || slices.Equal(c.Workload, []string{DemoWorkload})
		if c.Chat && !text {
			return usagef("chat: prompts of workload %s are random token ids, and no text: want --data FILE", strings.Join(c.Workload, ","))
		}
		if text {
			if err := p.local.text(c.Chat); err != nil {
				return err
			}
		}
		switch {
		case len(c.Data) > 0:
			o.KeepText, o.Counter = true, p.local.Tokenizer
		case text:
			p.Sets = []*workloads.Set{p.local.prompts(o)}
			p.warn("%s", p.Sets[0].Notes[0])
			return nil
		default:
			p.local.stops = false
			p.warn("prompts are random token ids of the traces' lengths, and end tokens are ignored: times mean something, text does not")
		}
	}
	for _, name := range names {
		key := fmt.Sprint(name, o, len(c.Data))
		set, err := p.sets[key], error(nil)
		if set == nil {
			set, err = load(name, o)
		}
		if err != nil {
			if IsDataError(err) {
				return &Error{ExitData, err}
			}
			return usage(err)
		}
		if c.Arrival.Replays() && !set.HasArrivals {
			return usagef("arrival %s: workload %s records no arrivals", c.Arrival, set.Name)
		}
		p.sets[key] = set
		p.Sets = append(p.Sets, set)
		for _, note := range set.Notes {
			p.warn("%s: %s", set.Name, note)
		}
		for _, k := range set.Skipped {
			p.warn("%s: %d of %d entries left out: %s", set.Name, k.Count, set.Total, k.Reason)
		}
	}
	if len(p.Sets) == 0 {
		return usagef("workload: want at least one, or data")
	}
	if c.Arrival.Replays() && c.Warmup > 0 {
		return usagef("warmup %d: a replayed trace has no arrivals for warm-up requests", c.Warmup)
	}
	return nil
}

// DemoWorkload is the workload of --engine cpu: prompts written for the embedded pair.
const DemoWorkload = "demo"

// IsDataError says that a dataset file is at fault: exit 3.
func IsDataError(err error) bool {
	var bad *workloads.DataError
	return errors.As(err, &bad)
}

// tokenizer is whose token counts fit the large model.
func (p *Plan) tokenizer() string {
	if strings.HasPrefix(p.Pair.Models[len(p.Pair.Models)-1].Name, "qwen") {
		return "qwen25"
	}
	return "llama31"
}

// expand makes the points: workload by workload, algorithm by algorithm, concurrency by concurrency, every system. A
// system that runs no algorithm has one point for all of them.
func (p *Plan) expand(ctx context.Context) error {
	c := p.Config
	concurrency := c.Concurrency
	if !c.Arrival.Closed() {
		concurrency = []int{0}
	}
	for _, set := range p.Sets {
		for a, algorithm := range c.Algorithm {
			table, err := p.thresholds(ctx, algorithm, set)
			if err != nil {
				return err
			}
			for _, n := range concurrency {
				for _, name := range c.System {
					sys, err := FindSystem(name)
					if err != nil {
						return usage(err)
					}
					if c.Engine != "sim" && sys.Topology == sim.RPC {
						return &Error{ExitTarget, fmt.Errorf("system %s runs with --engine sim only: name systems such as "+
							"tokenrouter, step-sync, large-only", sys.Name)}
					}
					pt := Point{Index: len(p.Points), System: sys, Set: set, Concurrency: n}
					if sys.Routed() {
						pt.Algorithm = algorithm
					} else if a > 0 {
						continue
					}
					if sys.Name == "tokenrouter" {
						if err := p.batch(&pt, table); err != nil {
							return err
						}
					}
					p.Points = append(p.Points, pt)
				}
			}
		}
	}
	return nil
}

// batch gives a point its thresholds.
func (p *Plan) batch(pt *Point, table core.Table) error {
	m := len(p.Pair.Models)
	if p.Policy.Timer > 0 && table == nil {
		// A pure timer: nobody starts the batch but the clock, or everybody being there.
		for n := 1; n <= max(pt.Concurrency, p.Config.MaxBatch); n++ {
			table = append(table, core.Scalar(m, n))
		}
	}
	if table == nil {
		return nil
	}
	pt.Vector = table[len(table)-1]
	if n := pt.Concurrency; n > 0 {
		pt.Vector = table.At(n)
		if err := core.CheckFeasible(pt.Vector, n); err != nil {
			return usagef("threshold %s at concurrency %d: %w", p.Config.Threshold, n, err)
		}
	}
	pt.Table = table
	if !p.Config.Strict {
		pt.Table = table.Lowered()
	}
	return nil
}

// serving are the models that a point's system runs.
func (p *Plan) serving(pt *Point) []models.Card {
	if pt.System.Routed() {
		return p.Pair.Models
	}
	i := pt.System.Only
	if i < 0 {
		i = len(p.Pair.Models) - 1
	}
	return p.Pair.Models[i : i+1]
}

// single is the model of a single-model system, and its KV pool: the deployment holds it alone.
func (p *Plan) single(s System) (model, kvTokens int, err error) {
	if s.Only < 0 {
		model = len(p.Pair.Models) - 1
	}
	switch {
	case p.Config.KVTokens > 0:
		return model, p.Config.KVTokens, nil
	case p.Memory != nil:
		kvTokens, err = p.Memory.Only(model).KVTokens()
		return model, kvTokens, err
	case p.Deployment == nil:
		return model, 0, nil
	}
	kvTokens, err = p.Deployment.Only(model).KVTokens(p.Pair.Models[model : model+1])
	return model, kvTokens, err
}

func (p *Plan) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	if !slices.Contains(p.Warnings, w) {
		p.Warnings = append(p.Warnings, w)
	}
}

// hash is over every key that decides the results, and over the content of the files that they name.
func (p *Plan) hash() (string, error) {
	h := sha256.New()
	for _, k := range Keys() {
		if !k.Free {
			fmt.Fprintf(h, "%s=%q\n", k.Name, k.Get(p.Config))
		}
	}
	for _, s := range p.Sets {
		fmt.Fprintf(h, "requests %s %s\n", s.Name, s.SHA256)
	}
	for _, path := range []string{p.Config.Latency, p.Config.Modulation, p.Config.Threshold, p.Config.Program, strings.TrimPrefix(p.Config.Signal, "replay:")} {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "file %x\n", sha256.Sum256(data))
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// Folder is where the results go.
func (p *Plan) Folder() string {
	if p.Config.Out != "" {
		return p.Config.Out
	}
	return "runs/" + p.Name + "-" + p.Hash[:8]
}

// Requests is how many requests the plan runs, warm-up and repeats included.
func (p *Plan) Requests() int {
	n := 0
	for i := range p.Points {
		n += len(p.Points[i].Set.Requests) + len(p.Points[i].Set.Warmup)
	}
	return n * p.Config.Repeat
}

// DescribeDeployment says which models run where, and the KV pool that is left.
func (p *Plan) DescribeDeployment() string {
	kv := "KV unlimited"
	if p.KVTokens > 0 {
		kv = fmt.Sprintf("KV pool of %d tokens for each model", p.KVTokens)
	}
	if p.Memory != nil {
		return fmt.Sprintf("this machine: %s; %s", p.Memory, kv)
	}
	if p.Deployment == nil {
		return "none: step times are whole steps; " + kv
	}
	layout := "separate"
	if p.Deployment.Shared {
		layout = "shared"
	}
	var parts []string
	for i, c := range p.Pair.Models {
		parts = append(parts, fmt.Sprintf("%s on TP %d", c.Name, p.Deployment.TP[i]))
	}
	return fmt.Sprintf("%d %s %s GPUs, %s; %s", p.Deployment.GPUs, layout, p.Deployment.GPU.Name, strings.Join(parts, ", "), kv)
}
