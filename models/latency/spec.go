package latency

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/models"
)

// Step times that two sources state for their pairs, small and large model: whole steps, whatever their shape.
const (
	ArticleSmall = 12 * time.Millisecond // article: Llama-3-8B
	ArticleLarge = 55 * time.Millisecond // article: Llama-3-70B

	PaperSmall = 6 * time.Millisecond     // paper, appendix D: Qwen3-0.6B on TP 1
	PaperLarge = 27900 * time.Microsecond // paper, appendix D: Qwen3-32B on TP 2
)

const constPrefix = "const:"

// Spec is a resolved latency: what a run's --latency means for its models.
type Spec struct {
	Name   string      // as asked for
	GPU    string      // canonical, for embedded tables; else ""
	Source string      // where the numbers come from; Label adds how
	Models []ModelSpec // by step.ModelID
}

// ModelSpec is one model's latency. Host may be changed before New is called, with HostOrigin.
type ModelSpec struct {
	Model      string
	TP         int // of the table; 0 where the latency doesn't depend on it
	Kind       Kind
	Origin     Origin
	Detail     string        // the law in short: "12ms", "llama3-70b tp4 on a100", a formula
	Host       time.Duration // overhead added to each step
	HostOrigin Origin

	Base func() Model // a fresh instance without the host's overhead
}

// New returns a fresh instance, host overhead included.
func (m ModelSpec) New() Model { return WithHost(m.Base(), m.Host) }

func (m ModelSpec) String() string {
	text := fmt.Sprintf("%s: %s %s (%s)", m.Model, m.Kind, m.Detail, m.Origin)
	if m.Host > 0 {
		text += fmt.Sprintf(" + host %s a step (%s)", m.Host, m.HostOrigin)
	}
	return text
}

// New returns a fresh instance for model i.
func (s *Spec) New(i int) Model { return s.Models[i].New() }

// Whole reports that every latency is a whole step whatever its shape. Then prefill costs no more than a decode, KV is
// unlimited, and transport, router cost and contention are 0 unless set.
func (s *Spec) Whole() bool {
	return !slices.ContainsFunc(s.Models, func(m ModelSpec) bool { return m.Kind != KindConstant })
}

// Label is the latency's source and how its numbers were come by, for results: "measured: ...; host overhead 3.94ms,
// 2.53ms a step (fitted)".
func (s *Spec) Label() string {
	var origins, hosts, hostOrigins []string
	overhead := false
	for _, m := range s.Models {
		if !slices.Contains(origins, string(m.Origin)) {
			origins = append(origins, string(m.Origin))
		}
		overhead = overhead || m.Host > 0
		hosts = append(hosts, m.Host.String())
		if m.Host > 0 && !slices.Contains(hostOrigins, string(m.HostOrigin)) {
			hostOrigins = append(hostOrigins, string(m.HostOrigin))
		}
	}
	label := strings.Join(origins, ", ") + ": " + s.Source
	if overhead {
		label += fmt.Sprintf("; host overhead %s a step (%s)",
			strings.Join(hosts, ", "), strings.Join(hostOrigins, ", "))
	}
	return label
}

// Names lists the latencies that have a name: GPUs with embedded tables, then the published pairs of step times, then
// those calibrated on the engine.
func Names() []string {
	var names []string
	for _, s := range shelves {
		names = append(names, s.gpu)
	}
	return append(append(names, "article", "paper"), presets(latencyPreset)...)
}

// Parse resolves a latency for the models of a deployment:
//
//	a100, h100, h200      embedded tables by model and tp, with the fitted host overhead (DefaultHost)
//	article, paper        the step times that the source states for its pair
//	cpu-demo              the embedded demo pair on a CPU, a law each; any other pair takes them as they are
//	const:6ms,27.9ms      step times, one for each model
//	FILE                  a latency file, see Schema
//
// cards are the models, smallest first; tp is their tensor parallelism, which only embedded tables need. An unknown
// name is an error that gives the nearest known one.
func Parse(spec string, cards []models.Card, tp []int) (*Spec, error) {
	if len(cards) == 0 {
		return nil, fmt.Errorf("latency %s: no models", spec)
	}
	name := strings.ToLower(strings.TrimSpace(spec))
	if gpu, err := models.LookupGPU(name); err == nil {
		return parseGPU(spec, gpu, cards, tp)
	}
	if f := preset(name, latencyPreset); f != nil {
		file, err := Read(name, f)
		if err != nil {
			return nil, err
		}
		s, err := file.Spec(name, cards)
		if err != nil {
			return nil, err
		}
		s.Source = file.Source
		return s, nil
	}
	switch {
	case name == "article":
		return published(spec, Article, "", cards, ArticleSmall, ArticleLarge)
	case name == "paper":
		return published(spec, Paper, "appendix D, ", cards, PaperSmall, PaperLarge)
	case strings.HasPrefix(name, constPrefix):
		return parseConst(spec, name[len(constPrefix):], cards)
	case isFile(spec):
		return parseFile(spec, cards)
	}
	all := fmt.Sprintf("(%s, %sD,D or a YAML file)", strings.Join(Names(), ", "), constPrefix)
	if near, ok := suggest.Nearest(name, Names()); ok {
		return nil, fmt.Errorf("unknown latency %q: did you mean %s? %s", spec, near, all)
	}
	return nil, fmt.Errorf("unknown latency %q %s", spec, all)
}

func parseGPU(spec string, gpu models.GPU, cards []models.Card, tp []int) (*Spec, error) {
	if len(tp) != len(cards) {
		return nil, fmt.Errorf("latency %s: %d TP values for %s: one for each model wanted", spec, len(tp), cardNames(cards))
	}
	s := &Spec{Name: spec, GPU: gpu.Name}
	for _, shelf := range shelves {
		if shelf.gpu == gpu.Name {
			s.Source = fmt.Sprintf("%s kernel tables, %s (ai-dynamo/aiconfigurator)", gpu.Name, shelf.version)
		}
	}
	for i, c := range cards {
		p, err := Lookup(gpu.Name, c.Name, tp[i])
		if err != nil {
			return nil, fmt.Errorf("latency %s: %w", spec, err)
		}
		s.Models = append(s.Models, ModelSpec{Model: c.Name, TP: tp[i], Kind: KindTable, Origin: Measured,
			Detail: p.Name(), Host: DefaultHost(i), HostOrigin: Fitted, Base: func() Model { return p.New() }})
	}
	return s, nil
}

// published resolves the step times that a source states for its pair, small and large; any other pair takes them as
// they are.
func published(spec string, by Origin, where string, cards []models.Card, times ...time.Duration) (*Spec, error) {
	if len(cards) != len(times) {
		return nil, fmt.Errorf("latency %s states %d step times, %s and %s, not one for each of %s: give %sD,D,... instead",
			spec, len(times), times[0], times[1], cardNames(cards), constPrefix)
	}
	return constants(spec, where, by, cards, times), nil
}

func parseConst(spec, list string, cards []models.Card) (*Spec, error) {
	var times []time.Duration
	for _, field := range strings.Split(list, ",") {
		field = strings.TrimSpace(field)
		d, err := time.ParseDuration(field)
		if err != nil {
			return nil, fmt.Errorf("latency %s: %q is no duration with a unit, as in 6.0ms or 800us", spec, field)
		}
		if d <= 0 {
			return nil, fmt.Errorf("latency %s: %s is not above 0", spec, field)
		}
		times = append(times, d)
	}
	if len(times) != len(cards) {
		return nil, fmt.Errorf("latency %s: %d step times for %d models, %s: one for each wanted",
			spec, len(times), len(cards), cardNames(cards))
	}
	return constants(spec, "", Assumed, cards, times), nil
}

func constants(spec, where string, origin Origin, cards []models.Card, times []time.Duration) *Spec {
	s := &Spec{Name: spec}
	var texts []string
	for i, c := range cards {
		d := times[i]
		s.Models = append(s.Models, ModelSpec{Model: c.Name, Kind: KindConstant, Origin: origin, Detail: d.String(),
			HostOrigin: Assumed, Base: func() Model { return Constant(d) }})
		texts = append(texts, d.String())
	}
	s.Source = fmt.Sprintf("%swhole steps of %s", where, strings.Join(texts, ", "))
	return s
}

func parseFile(path string, cards []models.Card) (*Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("latency file: %w", err)
	}
	defer f.Close()
	file, err := Read(path, f)
	if err != nil {
		return nil, err
	}
	return file.Spec(path, cards)
}

// Spec resolves a file's latencies for cards; name is the file's, for errors and labels.
func (f *File) Spec(name string, cards []models.Card) (*Spec, error) {
	picked, err := f.pick(cards)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &Spec{Name: name, Source: "file " + filepath.Base(name)}
	if f.Source != "" {
		s.Source += ", " + f.Source
	}
	for i, m := range picked {
		spec, err := m.spec(fmt.Sprintf("%s in %s", cards[i].Name, filepath.Base(name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, cards[i].Name, err)
		}
		spec.Model = cards[i].Name
		s.Models = append(s.Models, spec)
	}
	return s, nil
}

// isFile reports that a name means a file: it looks like a path, or there is one.
func isFile(name string) bool {
	if strings.ContainsAny(name, `/\`) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func cardNames(cards []models.Card) string {
	var names []string
	for _, c := range cards {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
