package calibrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trbench/trbench/models/latency"
)

// Schema names the version of calibration.json.
const Schema = "trbench.calibration/1"

// Report is calibration.json: all that the logs said.
type Report struct {
	Schema string        `json:"schema"`
	Steps  *StepsReport  `json:"steps"` // null where there was no such log, as the others
	Tokens *TokensReport `json:"tokens"`
	Bench  *BenchReport  `json:"bench"`
	Files  []string      `json:"files"` // written beside it, sorted
}

// Warnings are all doubts, each with what it is about.
func (r *Report) Warnings() []string {
	var all []string
	if s := r.Steps; s != nil {
		for _, m := range s.Models {
			for _, w := range m.Warnings {
				all = append(all, m.Model+": "+w)
			}
		}
		all = append(all, s.Warnings...)
	}
	if t := r.Tokens; t != nil {
		all = append(all, t.Warnings...)
	}
	if b := r.Bench; b != nil {
		all = append(all, b.Warnings...)
	}
	return all
}

// JSON writes the report, indented. What is missing or no number is null.
func (r *Report) JSON(w io.Writer) error {
	full := *r
	full.Schema = Schema
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(&full); err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// LatencyFile is the laws as `trbench run --latency FILE` reads them.
func (s *StepsReport) LatencyFile() *latency.File {
	f := &latency.File{Schema: latency.Schema, Source: "calibrated from " + filepath.Base(s.File)}
	for _, m := range s.Models {
		e := latency.FileModel{Model: m.Model, Kind: m.Law, Origin: latency.Fitted, HostMS: m.HostMS}
		if m.Law == latency.KindTable {
			steps := m.table
			e.Table = &steps
		} else {
			a := m.affine
			e.Affine = &a
		}
		f.Models = append(f.Models, e)
	}
	return f
}

// ModulationFile is the chain of all models as `trbench run --modulation FILE` reads it.
func (s *StepsReport) ModulationFile() latency.ModulationConfig {
	return s.Modulation.config(fmt.Sprintf("residual of %d steps of %s", s.Modulation.Steps, filepath.Base(s.File)))
}

// ModulationFile is the model's own chain.
func (m *ModelReport) ModulationFile() latency.ModulationConfig {
	return m.Chain.config(fmt.Sprintf("residual of %d steps of %s", m.Chain.Steps, m.Model))
}

// WriteModulation writes a modulation file that latency.ReadModulation reads.
func WriteModulation(w io.Writer, c latency.ModulationConfig) error {
	if _, err := latency.NewModulation("", c); err != nil {
		return fmt.Errorf("modulation file: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "schema: %s\n", c.Schema)
	if c.Source != "" {
		fmt.Fprintf(&b, "source: %s\n", strconv.Quote(c.Source))
	}
	if c.Origin != "" {
		fmt.Fprintf(&b, "origin: %s\n", c.Origin)
	}
	if c.Normalise {
		b.WriteString("normalise: true\n")
	}
	b.WriteString("states:\n")
	for _, s := range c.States {
		b.WriteString("  - {")
		if s.Name != "" {
			fmt.Fprintf(&b, "name: %s, ", strconv.Quote(s.Name))
		}
		fmt.Fprintf(&b, "multiplier: %s}\n", digits(s.Multiplier))
	}
	b.WriteString("transition:\n")
	for _, row := range c.Transition {
		var texts []string
		for _, p := range row {
			texts = append(texts, digits(p))
		}
		fmt.Fprintf(&b, "  - [%s]\n", strings.Join(texts, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteRouting writes the settings of a simulation as keys that `trbench run --config FILE` reads: those of an
// algorithm that writes one token at a time on the large model. Of more or fewer than two models it writes the weights
// of a model ensemble.
func (t *TokensReport) WriteRouting(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# From %s: %d tokens of %d request%s.\n",
		strconv.Quote(t.File), t.Tokens, t.Requests, plural(t.Requests))
	if q := t.Routing; q != nil {
		fmt.Fprintf(&b, "# R2R, CITER, Co-LLM and others that write one token on the large model and return:\n")
		fmt.Fprintf(&b, "switch_rate: %s\n", digits(q.After.SwitchRate))
		if c := q.Correlation.Value; c > 0 {
			fmt.Fprintf(&b, "signal: bursty\nsignal.correlation: %s\n", digits(min(c, .999)))
		} else {
			b.WriteString("signal: iid\n")
		}
		fmt.Fprintf(&b, "# Algorithms that stay on the large model until they let go (R-Stitch) instead:\n")
		fmt.Fprintf(&b, "#   switch_rate: %s\n#   return_rate: %s\n#   signal: iid\n",
			digits(q.Stay.SwitchRate), digits(q.Stay.ReturnRate))
	} else {
		var weights []string
		for _, s := range t.Share {
			weights = append(weights, digits(s.Value))
		}
		fmt.Fprintf(&b, "# Shares of %s, as the weights of the model ensemble:\nalgorithm.weights: [%s]\n",
			strings.Join(t.Models, ", "),
			strings.Join(weights, ", "))
	}
	if phases := t.signalPhases(); len(phases) > 1 {
		b.WriteString("# Rate by position in the output, as a factor of the mean:\n")
		for _, p := range phases {
			fmt.Fprintf(&b, "#   from %d: %.4g\n", p.From, p.Factor)
		}
	}
	if t.Acceptance != nil {
		fmt.Fprintf(&b, "# Speculative decoding keeps a draft with probability %s.\n", digits(t.Acceptance.Value))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// digits is a number's shortest text that reads back the same.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
