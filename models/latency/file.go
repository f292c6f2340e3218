package latency

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/trbench/trbench/models"
)

// Schema names the format of a latency file:
//
//	schema: trbench.latency/1
//	source: RTX 4090, llama.cpp b4000   # optional: where the numbers come from
//	models:                             # one for each model of the pair, smallest first
//	  - model: llama3-8b                # optional: then models are matched by name, in any order
//	    kind: constant                  # or affine, or table
//	    origin: measured                # or fitted, article, paper, assumed (the default)
//	    host_ms: 0.5                    # optional: added to each step
//	    constant: {step_ms: 12}
//	  - model: llama3-70b
//	    kind: affine                    # the terms of Affine
//	    affine:
//	      {c0_ms: 27.6, c1_ms_per_seq: 0.098, c2_ms_per_context_token: 5.7e-5,
//	       p0_ms: 16.4, p1_ms_per_token: 0.159, p2_ms_per_token2: 4.5e-7}
//	  - model: qwen3-0.6b
//	    kind: table                     # the grids of Steps; attention_ms may be left out
//	    table:
//	      decode:
//	        batch: [1, 2]
//	        context_tokens: [128, 1024]
//	        step_ms: [[1.84, 2.04], [2.26, 2.5]]
//	      prefill:
//	        tokens: [16, 1024]
//	        step_ms: [2.08, 8.15]
const Schema = "trbench.latency/1"

// Kind is the law by which a model's steps are priced.
type Kind string

// The kinds of latency model.
const (
	KindConstant Kind = "constant"
	KindAffine   Kind = "affine"
	KindTable    Kind = "table"
)

// Origin says how a number was come by. Results carry it.
type Origin string

// The origins.
const (
	Measured Origin = "measured"
	Fitted   Origin = "fitted"
	Article  Origin = "article" // stated by the article
	Paper    Origin = "paper"   // stated by the paper
	Assumed  Origin = "assumed"
)

func (o Origin) check() error {
	switch o {
	case Measured, Fitted, Article, Paper, Assumed:
		return nil
	}
	return fieldErrorf("origin", "is %q, wanted %s, %s, %s, %s or %s", o, Measured, Fitted, Article, Paper, Assumed)
}

// File is a latency file.
type File struct {
	Schema string      `yaml:"schema"`
	Source string      `yaml:"source,omitempty"`
	Models []FileModel `yaml:"models"`
}

// FileModel is one model of a File. Of Constant, Affine and Table, the one that Kind names is set.
type FileModel struct {
	Model    string        `yaml:"model,omitempty"`
	Kind     Kind          `yaml:"kind"`
	Origin   Origin        `yaml:"origin,omitempty"` // empty means Assumed
	HostMS   float64       `yaml:"host_ms,omitempty"`
	Constant *FileConstant `yaml:"constant,omitempty"`
	Affine   *Affine       `yaml:"affine,omitempty"`
	Table    *Steps        `yaml:"table,omitempty"`
}

// FileConstant is a Constant in a File.
type FileConstant struct {
	StepMS float64 `yaml:"step_ms"`
}

// Read reads a latency file; name stands in errors, which give the line and field, what was found and what was wanted.
func Read(name string, r io.Reader) (*File, error) {
	var f File
	doc, err := readYAML(name, r, &f)
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, doc.trace(err)
	}
	return &f, nil
}

// Write writes f so that Read gives it back unchanged. It fails where Read would refuse f.
func Write(w io.Writer, f *File) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("latency file: %w", err)
	}
	text, err := yaml.MarshalWithOptions(f, yaml.IndentSequence(true), yaml.CustomMarshaler(line))
	if err != nil {
		return fmt.Errorf("latency file: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// line writes numbers on one line, so that a grid in a file looks like one.
func line(numbers []float64) ([]byte, error) {
	var texts []string
	for _, x := range numbers {
		texts = append(texts, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return []byte("[" + strings.Join(texts, ", ") + "]"), nil
}

func (f *File) check() error {
	if f.Schema != Schema {
		return fieldErrorf("schema", "is %q, wanted %s", f.Schema, Schema)
	}
	if len(f.Models) == 0 {
		return fieldErrorf("models", "is empty, wanted a latency for each model")
	}
	named := make(map[string]int)
	for i, m := range f.Models {
		if err := m.check(); err != nil {
			return within(index("models", i), err)
		}
		if (m.Model == "") != (f.Models[0].Model == "") {
			return fieldErrorf(index("models", i)+".model", "is %q: name all models or none", m.Model)
		}
		if first, twice := named[canonical(m.Model)]; twice && m.Model != "" {
			return fieldErrorf(index("models", i)+".model", "is %q, as is models[%d]", m.Model, first)
		}
		named[canonical(m.Model)] = i
	}
	return nil
}

func (m FileModel) check() error {
	given := map[Kind]bool{KindConstant: m.Constant != nil, KindAffine: m.Affine != nil, KindTable: m.Table != nil}
	if _, known := given[m.Kind]; !known {
		return fieldErrorf("kind", "is %q, wanted %s, %s or %s", m.Kind, KindConstant, KindAffine, KindTable)
	}
	for _, k := range []Kind{KindConstant, KindAffine, KindTable} {
		switch {
		case k == m.Kind && !given[k]:
			return fieldErrorf("kind", "is %s, but there is no field %s", k, k)
		case k != m.Kind && given[k]:
			return fieldErrorf(string(k), "is given, but kind is %s", m.Kind)
		}
	}
	if m.Origin != "" {
		if err := m.Origin.check(); err != nil {
			return err
		}
	}
	if !(m.HostMS >= 0 && m.HostMS <= maxMS) {
		return fieldErrorf("host_ms", "is %g, wanted 0 to %g", m.HostMS, float64(maxMS))
	}
	switch m.Kind {
	case KindConstant:
		if ms := m.Constant.StepMS; !(ms > 0 && ms <= maxMS) {
			return fieldErrorf("constant.step_ms", "is %g, wanted above 0 and at most %g", ms, float64(maxMS))
		}
		return nil
	case KindAffine:
		return within("affine", m.Affine.check())
	default:
		return within("table", m.Table.check())
	}
}

// canonical folds a model's name: a known model's canonical one, else lower case.
func canonical(name string) string {
	if c, err := models.Lookup(name); err == nil {
		return c.Name
	}
	return strings.ToLower(strings.TrimSpace(name))
}

// pick returns the file's latencies for cards, in their order: by name where the file gives names, else by position.
func (f *File) pick(cards []models.Card) ([]FileModel, error) {
	if f.Models[0].Model == "" {
		if len(f.Models) != len(cards) {
			return nil, fieldErrorf("models", "has %d latencies without a model's name, wanted %d, for %s",
				len(f.Models), len(cards), cardNames(cards))
		}
		return f.Models, nil
	}
	var picked []FileModel
	for _, c := range cards {
		i := slices.IndexFunc(f.Models, func(m FileModel) bool { return canonical(m.Model) == canonical(c.Name) })
		if i < 0 {
			var has []string
			for _, m := range f.Models {
				has = append(has, m.Model)
			}
			return nil, fieldErrorf("models", "has no latency for %s, only for %s", c.Name, strings.Join(has, ", "))
		}
		picked = append(picked, f.Models[i])
	}
	return picked, nil
}

// spec makes a checked FileModel ready for use; label stands in a table's warnings.
func (m FileModel) spec(label string) (ModelSpec, error) {
	s := ModelSpec{Kind: m.Kind, Origin: m.Origin, HostOrigin: m.Origin}
	if s.Origin == "" {
		s.Origin, s.HostOrigin = Assumed, Assumed
	}
	if m.HostMS > 0 {
		s.Host = duration(m.HostMS * nsPerMS)
	}
	switch m.Kind {
	case KindConstant:
		step := duration(m.Constant.StepMS * nsPerMS)
		s.Detail, s.Base = step.String(), func() Model { return Constant(step) }
	case KindAffine:
		a := *m.Affine
		s.Detail, s.Base = a.String(), func() Model { return a }
	default:
		p, err := NewProfile(label, *m.Table)
		if err != nil {
			return s, err
		}
		s.Detail, s.Base = p.Name(), func() Model { return p.New() }
	}
	return s, nil
}
