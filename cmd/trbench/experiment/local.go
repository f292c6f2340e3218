package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/demo"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/models/tokenizer"
	"github.com/trbench/trbench/models/weights"
	"github.com/trbench/trbench/sim"
	"github.com/trbench/trbench/workloads"
)

// Local is a pair of models with weights, loaded for the CPU backend.
type Local struct {
	Names     []string
	Configs   []weights.Config
	Tokenizer *tokenizer.Tokenizer
	Demo      bool // the embedded pair

	sequences *engine.Sequences
	backends  []*cpu.Model
	workers   int   // cores of a model
	available int64 // bytes of memory before the models were loaded; 0 where nobody says
	sampling  cpu.Sampling
	stops     bool // the models' own end tokens end a request
	score     signal.Source
}

// demoOutput is how many tokens an answer of the demo pair may have: its positions were trained up to 384.
const demoOutput = 160

// memory is what the loaded models share, of so many bytes.
func (l *Local) memory(bytes int64, origin string) models.Memory {
	m := models.Memory{Bytes: bytes, Origin: origin}
	for i, b := range l.backends {
		m.Models = append(m.Models, models.MemoryUse{Name: l.Names[i], WeightBytes: b.MemoryBytes(), KVBytesPerToken: b.KVBytesPerToken()})
	}
	return m
}

// openTokenizer opens the tokenizer of a pair: the large model's, the small one's where that has none, or that of the
// folder which both are in. nil is none: random token ids can do without.
func openTokenizer(small, large string) (*tokenizer.Tokenizer, error) {
	folders := []string{large, small}
	if parent := filepath.Dir(filepath.Clean(large)); parent == filepath.Dir(filepath.Clean(small)) {
		folders = append(folders, parent)
	}
	for _, dir := range folders {
		t, err := tokenizer.Open(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return t, err
		}
	}
	return nil, nil
}

// text fails unless the models have a tokenizer, and a chat template where one is asked for. Base models have templates
// too, so that no file says whether prompts are meant to be in one: the user does.
func (l *Local) text(chat bool) error {
	switch {
	case l.Tokenizer == nil:
		return &Error{ExitTarget, fmt.Errorf("%s: no tokenizer.json: text needs one; prompts of random token ids do not "+
			"(--workload gsm8k)", strings.Join(l.Names, ", "))}
	case chat && l.Tokenizer.Template() == tokenizer.NoTemplate:
		return usagef("chat: the tokenizer of %s has no chat template (chat_template in tokenizer_config.json, or chat_template.jinja)",
			strings.Join(l.Names, ", "))
	case chat && l.Tokenizer.Template() == tokenizer.UnknownTemplate:
		return usagef("chat: %s: %w", strings.Join(l.Names, ", "), tokenizer.ErrTemplate)
	}
	return nil
}

// encode is a prompt's token ids: as it is, or as a user's message in the chat template.
func (l *Local) encode(text string, chat bool) ([]int32, error) {
	if !chat {
		return l.Tokenizer.Encode(text, true), nil
	}
	return l.Tokenizer.Chat([]tokenizer.Message{{Role: tokenizer.User, Content: text}})
}

// ends are the tokens that end a text: those of the models' configurations, and of the tokenizer's.
func (l *Local) ends() []int32 {
	var ids []int32
	for _, c := range l.Configs {
		ids = append(ids, c.EOS...)
	}
	if l.Tokenizer != nil {
		ids = append(ids, l.Tokenizer.EOS()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// OpenLocal loads two models from folders of Hugging Face files; both folders empty is the embedded demo pair.
func OpenLocal(small, large string) (*Local, error) {
	l := &Local{stops: true, available: availableMemory()}
	if small == "" && large == "" {
		l.Demo = true
		l.Names = []string{"gsm-s", "gsm-l"}
		var err error
		if l.Tokenizer, err = demo.Tokenizer(); err != nil {
			return nil, err
		}
		return l, l.load(func(i int) (*weights.Model, error) {
			if i == 0 {
				return weights.OpenFS(demo.Small(), ".")
			}
			return weights.OpenFS(demo.Large(), ".")
		})
	}
	dirs := []string{small, large}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, &Error{ExitTarget, fmt.Errorf("model folder %q: want a folder with config.json, *.safetensors and tokenizer.json", dir)}
		}
		l.Names = append(l.Names, filepath.Base(filepath.Clean(dir)))
	}
	if l.Names[0] == l.Names[1] { // results and step logs tell models apart by name
		l.Names = []string{l.Names[0] + "-small", l.Names[1] + "-large"}
	}
	var err error
	if l.Tokenizer, err = openTokenizer(small, large); err != nil {
		return nil, &Error{ExitTarget, err}
	}
	return l, l.load(func(i int) (*weights.Model, error) { return weights.Open(dirs[i]) })
}

// load packs the weights; the models share the cores.
func (l *Local) load(open func(int) (*weights.Model, error)) error {
	l.sequences = engine.NewSequences()
	proposals := cpu.NewProposals(route.MaxDraft)
	workers := max(1, runtime.GOMAXPROCS(0)/len(l.Names))
	l.workers = workers
	for i := range l.Names {
		w, err := open(i)
		if err != nil {
			return &Error{ExitTarget, err}
		}
		o := cpu.Options{
			Tokens: l.sequences.Tokens, Proposals: proposals, Pool: cpu.NewPool(workers),
			Sampling: func(step.Handle) cpu.Sampling { return l.sampling },
			Score:    l.fill,
		}
		m, err := cpu.New(w, o)
		if err != nil {
			return usage(err)
		}
		l.Configs = append(l.Configs, w.Config)
		l.backends = append(l.backends, m)
		if err := w.Close(); err != nil {
			return err
		}
	}
	if a, b := l.Configs[0].Vocab, l.Configs[1].Vocab; a != b {
		return usagef("%s has %d tokens and %s %d: models that share requests need one vocabulary", l.Names[0], a, l.Names[1], b)
	}
	return nil
}

// fill gives a router that draws, such as me, its draws.
func (l *Local) fill(b *step.Batch, dst []float64) {
	if l.score != nil {
		l.score.Fill(b, dst)
	}
}

// positions is the longest sequence that both models take.
func (l *Local) positions() int {
	n := l.Configs[0].MaxPositions
	for _, c := range l.Configs {
		n = min(n, c.MaxPositions)
	}
	return n
}

// pair are the models' cards.
func (l *Local) pair() (models.Pair, error) {
	p := models.Pair{Name: strings.Join(l.Names, "+")}
	if l.Demo {
		p.Name = "demo"
	}
	for i, c := range l.Configs {
		p.Models = append(p.Models, c.Card(l.Names[i]))
	}
	return p, nil
}

// prompts are the demo pair's own workload: word problems of our own writing.
func (l *Local) prompts(o workloads.Options) *workloads.Set {
	set := &workloads.Set{
		Name: "demo", Source: "generated word problems, embedded", Sampler: "none",
		Notes: []string{fmt.Sprintf("demo: answers end at the model's end token, or after %d tokens", demoOutput)},
	}
	for i, text := range demo.Prompts(o.N+o.Warmup, o.Seed) {
		r := workloads.Request{Prompt: l.Tokenizer.Count(text), Output: demoOutput, Text: text}
		if i < o.N {
			set.Requests = append(set.Requests, r)
		} else {
			set.Warmup = append(set.Warmup, r)
		}
	}
	set.Total, set.Usable = len(set.Requests), len(set.Requests)
	return set
}

// ids are a request's prompt: its text's tokens, or random ones of its length where it has no text.
func (l *Local) ids(r workloads.Request, id int, seed uint64, chat bool) ([]int32, error) {
	if r.Text != "" {
		return l.encode(r.Text, chat)
	}
	rng := rand.New(rand.NewPCG(seed, uint64(id)))
	ids := make([]int32, r.Prompt)
	for i := range ids {
		ids[i] = int32(rng.IntN(l.Configs[0].Vocab))
	}
	return ids, nil
}

// localEngine sets up the engine over the loaded models for one point.
func (p *Plan) localEngine(pt *Point, seed uint64, now func() clock.Instant) (*engine.Config, error) {
	l := p.local
	cfg := &engine.Config{
		Now: now, StepSync: pt.System.Topology == sim.StepSync, Sequences: l.sequences, Cores: l.workers,
	}
	l.sampling = cpu.Sampling{Temperature: p.Config.Temperature, TopK: p.Config.TopK, TopP: p.Config.TopP, Seed: seed}
	l.sampling.Stop = []int32{}
	if l.stops {
		l.sampling.Stop = l.ends()
	}
	add := func(i, kv int) {
		cfg.Models = append(cfg.Models, engine.Model{
			Name: l.Names[i], Backend: l.backends[i], Policy: p.policy(pt, i), KVTokens: kv, BlockTokens: l.backends[i].BlockTokens(),
		})
	}
	if !pt.System.Routed() {
		i, kv, err := p.single(pt.System)
		if err != nil {
			return nil, err
		}
		add(i, kv)
		return cfg, nil
	}
	for i := range l.Names {
		add(i, p.KVTokens)
	}
	r, err := p.router(pt.Algorithm)
	if err != nil {
		return nil, err
	}
	cfg.Router = r
	ruled, ok := r.(route.Ruled)
	if !ok {
		return cfg, nil
	}
	var rules []signal.Rule
	for i := range l.Names {
		rules = append(rules, ruled.Rule(step.ModelID(i)))
	}
	l.score, err = signal.New(signal.Config{Seed: seed, Rules: rules, Rates: make([]float64, len(rules))})
	return cfg, err
}

// localRouter says whether an algorithm can run on models alone: without an external router's score.
func localRouter(name string, r route.Router) error {
	ruled, ok := r.(route.Ruled)
	if !ok {
		return nil
	}
	if rule := ruled.Rule(0); rule.Used() && !rule.Uniform && rule.Score == signal.External {
		return fmt.Errorf("algorithm %s reads an external router's score (%s), which --engine cpu does not have: "+
			"use one that reads the models' own, such as entropy, r-stitch, specdec, cascade", name, rule.Name)
	}
	return nil
}

// machine describes what the models run on.
func (l *Local) machine() *latency.Spec {
	f := cpu.Features()
	s := &latency.Spec{Name: "cpu", Source: fmt.Sprintf("this machine, %s kernels on %d cores", f.SIMD, f.Cores)}
	for _, name := range l.Names {
		s.Models = append(s.Models, latency.ModelSpec{Model: name, Kind: "real steps", Origin: latency.Measured, Detail: "of float32 sums"})
	}
	return s
}
