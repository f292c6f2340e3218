package fidelity

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/trbench/trbench/results"
)

// CSV writes one line a figure: run, mechanism that is off (empty: none), metric, statistic, real, predicted and error.
// Floats are unrounded, and a cell is empty where there is no value.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"run", "without", "metric", "statistic", "real", "predicted", "error"}); err != nil {
		return err
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if err := run.Figures.csv(out, run.Name, ""); err != nil {
			return err
		}
		for k := range run.Ablations {
			if err := run.Ablations[k].csv(out, run.Name, run.Ablations[k].Without); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func (f *Figures) csv(out *csv.Writer, run, without string) error {
	write := func(metric, statistic string, p Pair, off results.Float) error {
		return out.Write([]string{run, without, metric, statistic, exact(p.Real), exact(p.Predicted), exact(off)})
	}
	for _, m := range f.metrics() {
		for i, p := range m.dist.pairs() {
			if err := write(m.key, [...]string{"mean", "p50", "p90", "p95", "p99"}[i], p, p.Error()); err != nil {
				return err
			}
		}
	}
	if err := write("output_tok_s", "", f.OutputTokS, f.OutputTokS.Error()); err != nil {
		return err
	}
	if err := write("tpot_mape", "", Pair{}, f.TPOTMAPE); err != nil {
		return err
	}
	return write("e2e_mape", "", Pair{}, f.E2EMAPE)
}

// exact writes the shortest decimal that reads back as the same float64.
func exact(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
