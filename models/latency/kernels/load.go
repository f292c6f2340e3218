package kernels

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Files of a folder of kernel tables, times in microseconds a call.
const (
	DenseFile     = "dense.csv"        // layer, tokens, time_us
	AttentionFile = "attention.csv"    // prefill_chunk, kv_prefill, n_decode, kv_decode, time_us
	SequenceFile  = "per_sequence.csv" // layer, sequences, time_us
	SkewFile      = "skew.csv"         // optional: n, ratio, pc, kp, kvs, t_mean_us, t_max_us, t_skew_us
	ReduceFile    = "allreduce.csv"    // optional: elements, us
)

// kernel is one of dense.csv: where it belongs, and how often it runs there.
type kernel struct {
	name   string
	times  float64
	weight bool // it multiplies by weights
	layer  bool // once or more in each layer
}

var known = []kernel{
	{"qkv_proj", 1, true, true}, {"o_proj", 1, true, true}, {"gate_up_proj", 1, true, true}, {"down_proj", 1, true, true},
	{"layernorm", 2, false, true}, {"rotary_emb", 1, false, true}, {"act_fn", 1, false, true}, {"qk_norm", 1, false, true},
	{"embedding", 1, false, false}, {"final_layernorm", 1, false, false},
}

// Load reads the tables of folder, for a model of this architecture. reduce is the table of all-reduces, or "" for the
// one in the folder, if there is one. What the tables lack but a step needs is a warning. Errors are *Error.
func Load(folder, reduce string, arch Arch) (m *Model, warnings []string, err error) {
	m = &Model{arch: arch}
	if warnings, err = m.loadDense(filepath.Join(folder, DenseFile)); err != nil {
		return nil, nil, err
	}
	if err := m.loadSequences(filepath.Join(folder, SequenceFile)); err != nil {
		return nil, nil, err
	}
	if err := m.loadAttention(filepath.Join(folder, AttentionFile)); err != nil {
		return nil, nil, err
	}
	switch err := m.loadSkew(filepath.Join(folder, SkewFile)); {
	case errors.Is(err, fs.ErrNotExist):
		warnings = append(warnings, fmt.Sprintf("%s has no %s: attention is priced as if all contexts of a batch were alike, "+
			"which is too fast where they are not", folder, SkewFile))
	case err != nil:
		return nil, nil, err
	}
	if arch.TP < 2 {
		return m, warnings, nil
	}
	path := cmp.Or(reduce, filepath.Join(folder, ReduceFile))
	switch err := m.loadReduce(path); {
	case errors.Is(err, fs.ErrNotExist) && reduce == "":
		warnings = append(warnings, fmt.Sprintf("tensor parallelism %d without measured all-reduces: %d of them a step are "+
			"left out, and steps are too short", arch.TP, 2*arch.Layers+1))
	case err != nil:
		return nil, nil, err
	case arch.TP > 2:
		warnings = append(warnings, fmt.Sprintf("%s is taken for %d GPUs as it is: tables of two GPUs are too fast for more",
			path, arch.TP))
	}
	return m, warnings, nil
}

// kernelCurve is the rows of one kernel as they are read.
type kernelCurve struct {
	name string
	curve
}

// loadCurves reads a table of kernels by one variable.
func loadCurves(path, variable string) ([]kernelCurve, error) {
	var curves []kernelCurve
	err := readTable(path, []string{"layer", variable, "time_us"}, func(r *row) error {
		i := len(curves) - 1
		if i < 0 || curves[i].name != string(r.cells[0]) {
			i = slices.IndexFunc(curves, func(c kernelCurve) bool { return c.name == string(r.cells[0]) })
		}
		if i < 0 {
			i = len(curves)
			curves = append(curves, kernelCurve{name: string(r.cells[0])})
		}
		x, err := r.number(1, 1)
		if err != nil {
			return err
		}
		y, err := r.number(2, 0)
		if err != nil {
			return err
		}
		c := &curves[i].curve
		if n := len(c.x); n > 0 && x <= c.x[n-1] {
			return r.fault(1, "%g of layer %s: want more than the %g of the line before", x, curves[i].name, c.x[n-1])
		}
		c.add(x, y)
		return nil
	})
	return curves, err
}

func (m *Model) loadDense(path string) (warnings []string, err error) {
	curves, err := loadCurves(path, "tokens")
	if err != nil {
		return nil, err
	}
	var weights, small []*curve
	var once, times []float64
	for _, p := range known {
		i := slices.IndexFunc(curves, func(c kernelCurve) bool { return c.name == p.name })
		switch {
		case i < 0 && p.weight:
			return nil, &Error{Path: path, Field: "layer", Msg: "no lines of layer " + p.name}
		case i < 0 && (p.name != "qk_norm" || m.arch.QKNorm):
			warnings = append(warnings, fmt.Sprintf("%s has no layer %s: it is left out", path, p.name))
		case i < 0:
		case p.weight:
			weights, once = append(weights, &curves[i].curve), append(once, p.times)
		case p.layer:
			small, times = append(small, &curves[i].curve), append(times, p.times)
		case p.name == "embedding":
			m.embedding = curves[i].curve
		default:
			m.norm = curves[i].curve
		}
	}
	for _, c := range curves {
		if !slices.ContainsFunc(known, func(p kernel) bool { return p.name == c.name }) {
			warnings = append(warnings, fmt.Sprintf("%s: layer %q is not known: it is left out", path, c.name))
		}
	}
	m.layer, m.small = sum(weights, once), sum(small, times)
	return warnings, nil
}

func (m *Model) loadSequences(path string) error {
	curves, err := loadCurves(path, "sequences")
	if err != nil {
		return err
	}
	for _, c := range curves {
		switch c.name {
		case "lm_head":
			m.head = c.curve
		case "sampler":
			m.sampler = c.curve
		default:
			return &Error{Path: path, Field: "layer", Msg: fmt.Sprintf("%q: want lm_head or sampler", c.name)}
		}
	}
	if m.head.empty() {
		return &Error{Path: path, Field: "layer", Msg: "no lines of layer lm_head"}
	}
	return nil
}

func (m *Model) loadAttention(path string) error {
	var points []point
	columns := []string{"prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"}
	var at []int // lines of points
	err := readTable(path, columns, func(r *row) error {
		var p point
		if err := r.numbers(0, 0, &p.chunk, &p.cached, &p.decodes, &p.context, &p.us); err != nil {
			return err
		}
		if p.chunk > 0 && p.chunk < 1 {
			return r.fault(0, "%g: want 0, or at least 1", p.chunk)
		}
		if p.chunk == 0 && p.decodes == 0 {
			return r.fault(0, "0, and n_decode 0: want tokens of a prefill, or decodes")
		}
		if p.chunk == 0 {
			p.cached = 0
		}
		if p.decodes == 0 {
			p.context = 0
		}
		points, at = append(points, p), append(at, r.line)
		return nil
	})
	if err != nil {
		return err
	}
	seen := make(map[[4]float64]int, len(points))
	decodes, prefills := false, false
	for i, p := range points {
		key := [...]float64{p.chunk, p.cached, p.decodes, p.context}
		if first, ok := seen[key]; ok {
			return &Error{Path: path, Line: at[i], Msg: fmt.Sprintf("the same batch as in line %d", first)}
		}
		seen[key] = at[i]
		decodes = decodes || p.chunk == 0
		prefills = prefills || p.decodes == 0
	}
	if !decodes || !prefills {
		return &Error{Path: path, Msg: "want lines of decodes alone (prefill_chunk 0) and of prefills alone (n_decode 0)"}
	}
	m.attention = newAttention(points)
	return nil
}

func (m *Model) loadSkew(path string) error {
	var rows []batch
	columns := []string{"n", "ratio", "pc", "kp", "kvs", "t_mean_us", "t_max_us", "t_skew_us"}
	err := readTable(path, columns, func(r *row) error {
		var b batch
		if err := r.numbers(0, 1, &b.decodes); err != nil {
			return err
		}
		if err := r.numbers(1, 0, &b.share, &b.chunk, &b.cached); err != nil {
			return err
		}
		if err := r.numbers(4, 1, &b.small); err != nil {
			return err
		}
		if err := r.numbers(5, 0, &b.mean, &b.longest, &b.skewed); err != nil {
			return err
		}
		if b.share > 1 {
			return r.fault(1, "%g: want a share of the sequences, up to 1", b.share)
		}
		if b.mean == 0 {
			return r.fault(5, "0: want a time")
		}
		rows = append(rows, b)
		return nil
	})
	if err != nil {
		return err
	}
	m.skew = newSkew(rows)
	return nil
}

func (m *Model) loadReduce(path string) error {
	return readTable(path, []string{"elements", "us"}, func(r *row) error {
		var x, y float64
		if err := r.numbers(0, 1, &x); err != nil {
			return err
		}
		if err := r.numbers(1, 0, &y); err != nil {
			return err
		}
		c := &m.reduce
		if n := len(c.x); n > 0 && x <= c.x[n-1] {
			return r.fault(0, "%g: want more than the %g of the line before", x, c.x[n-1])
		}
		c.add(x, y)
		return nil
	})
}
