package replay

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/results/plot"
)

// Compare predicts the run with all mechanisms, and with each one off, and sets all that beside what was measured.
func (r *Run) Compare(ctx context.Context) (*fidelity.Run, *plot.Replay, error) {
	p, err := r.predict(ctx)
	if err != nil {
		return nil, nil, err
	}
	s := r.Settings
	gpus := s.GPU
	if s.TP > 1 {
		gpus = fmt.Sprintf("%d x %s", s.TP, s.GPU)
	}
	f := &fidelity.Run{
		Name: filepath.Clean(r.Dir), Requests: len(r.requests),
		Real: fmt.Sprintf("measured: %s, %s on %s, %s, at most %d requests and %d tokens a step", s.Engine, s.Model, gpus,
			r.memory(), s.MaxSeqs, s.TokenBudget),
		Predicted: fmt.Sprintf("simulated: vLLM's scheduler over the kernel times of %s; nothing is fitted to the run",
			strings.Join(lastTwo(s.Tables), "/")),
		Figures:  fidelity.Compare(r.real, p.samples, r.tokS, p.tokS),
		Warnings: append(r.Warnings, p.warnings...),
	}
	for _, m := range Mechanisms() {
		if !m.applies(r) {
			continue
		}
		without, err := r.predict(ctx, m)
		if err != nil {
			return nil, nil, fmt.Errorf("without %s: %w", m.Name, err)
		}
		f.Ablations = append(f.Ablations, fidelity.Ablation{
			Without: m.Name, Figures: fidelity.Compare(r.real, without.samples, r.tokS, without.tokS),
		})
	}
	return f, r.picture(p), nil
}

// memory says how much KV there is.
func (r *Run) memory() string {
	if r.Settings.KVBlocks == nil {
		return "KV without limit"
	}
	return fmt.Sprintf("KV of %d blocks of %d tokens", *r.Settings.KVBlocks, r.Settings.BlockTokens)
}

// lastTwo are the last two folders of a path.
func lastTwo(path string) []string {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	return parts[max(0, len(parts)-2):]
}
