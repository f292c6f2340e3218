package markov

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// TableSchema names the file format; a reader refuses any other.
const TableSchema = "trbench.threshold/1"

// maxTableBytes bounds a file that is read: a thousand rows are 100 kB.
const maxTableBytes = 1 << 20

// Write writes the table as YAML of schema trbench.threshold/1. Numbers are written so that Read returns the same ones.
func (t *Table) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Best batching thresholds by active requests n, one per model; the last row holds beyond.\n")
	fmt.Fprintf(b, "schema: %s\n", TableSchema)
	fmt.Fprintf(b, "provenance: %s\n", strconv.Quote(t.Provenance))
	fmt.Fprintf(b, "models:\n")
	for _, m := range t.Models {
		ms := make([]float64, len(m.Step))
		for i, d := range m.Step {
			ms[i] = float64(d) / float64(time.Millisecond)
		}
		fmt.Fprintf(b, "  - {name: %s, step_ms: %s}\n", strconv.Quote(m.Name), flow(ms))
	}
	fmt.Fprintf(b, "quantum_ms: %s\n", number(float64(t.Quantum)/float64(time.Millisecond)))
	fmt.Fprintf(b, "p: %s # chance that a token of the first model is handed over\n", number(handover(t.Routing.P)))
	fmt.Fprintf(b, "routing: %s\n", flowRows(t.Routing.P))
	fmt.Fprintf(b, "committed: %s\n", flowRows(t.Routing.C))
	fmt.Fprintf(b, "rows:\n")
	for i, r := range t.Rows {
		threshold := make([]float64, len(r.Threshold))
		for j, v := range r.Threshold {
			threshold[j] = float64(v)
		}
		fmt.Fprintf(b, "  - {n: %d, threshold: %s, eager_tok_s: %s, best_tok_s: %s}\n",
			i+1, flow(threshold), number(r.Eager), number(r.Best))
	}
	return b.Flush()
}

// handover is the chance that a step of model 0 is followed by one of another model.
func handover(p [][]float64) float64 {
	sum := 0.0
	for _, x := range p[0][1:] {
		sum += x
	}
	return sum
}

// number is the shortest decimal that reads back as x, with a point in it where YAML 1.1 wants one: 1.0e-06.
func number(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok && !strings.Contains(mantissa, ".") {
		return mantissa + ".0e" + exponent
	}
	return s
}

func flow(xs []float64) string {
	s := make([]string, len(xs))
	for i, x := range xs {
		s[i] = number(x)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

func flowRows(rows [][]float64) string {
	s := make([]string, len(rows))
	for i, row := range rows {
		s[i] = flow(row)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// ReadTable reads a table and checks everything in it; file names it in errors, which are *TableError or r's own. A
// field that the schema does not have is an error, so that a misspelt one is not passed over.
func ReadTable(r io.Reader, file string) (*Table, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxTableBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(text) > maxTableBytes {
		return nil, &TableError{File: file, Found: "more", Wanted: fmt.Sprintf("at most %d MiB", maxTableBytes>>20)}
	}
	root, err := parse(text, file)
	if err != nil {
		return nil, err
	}
	d := decoder{}
	t := d.table(root)
	if d.err != nil {
		return nil, d.err
	}
	return t, nil
}

// decoder turns nodes into a table. It keeps the first error and goes on with zero values.
type decoder struct{ err error }

func (d *decoder) fail(n node, found, wanted string) {
	if d.err == nil {
		d.err = &TableError{File: n.file, Line: n.line, Field: n.path, Found: found, Wanted: wanted}
	}
}

func (d *decoder) table(root node) *Table {
	f := d.fields(root, "schema", "provenance", "models", "quantum_ms", "p", "routing", "committed", "rows")
	if s := d.text(f["schema"]); s != TableSchema {
		d.fail(f["schema"], s, TableSchema)
	}
	t := &Table{Provenance: d.text(f["provenance"])}
	rows := d.list(f["rows"])
	if len(rows) == 0 {
		d.fail(f["rows"], "no row", "at least one")
	}
	for _, n := range d.list(f["models"]) {
		m := d.fields(n, "name", "step_ms")
		model := TableModel{Name: d.text(m["name"])}
		steps := d.list(m["step_ms"])
		if len(steps) != 1 && len(steps) < len(rows) {
			d.fail(m["step_ms"], fmt.Sprintf("%d step times", len(steps)),
				fmt.Sprintf("one, or one for each batch size up to %d", len(rows)))
		}
		for _, s := range steps {
			model.Step = append(model.Step, d.duration(s))
		}
		t.Models = append(t.Models, model)
	}
	t.Quantum = d.duration(f["quantum_ms"])
	t.Routing = Routing{P: d.matrix(f["routing"]), C: d.matrix(f["committed"])}
	if d.err != nil {
		return nil
	}
	if err := t.Routing.validate(); err != nil {
		d.fail(f["routing"], err.Error(), "probabilities and token counts")
		return nil
	}
	models := len(t.Routing.P)
	if len(t.Models) != models {
		d.fail(f["models"], fmt.Sprintf("%d models", len(t.Models)), fmt.Sprintf("the %d of routing", models))
	}
	if p, want := d.float(f["p"]), handover(t.Routing.P); math.Abs(p-want) > rowSumTolerance {
		d.fail(f["p"], number(p), number(want)+", the sum of the first row of routing without its first entry")
	}
	for i, n := range rows {
		t.Rows = append(t.Rows, d.row(n, i+1, models))
	}
	return t
}

func (d *decoder) row(n node, requests, models int) TableRow {
	f := d.fields(n, "n", "threshold", "eager_tok_s", "best_tok_s")
	if k := d.int(f["n"]); k != requests {
		d.fail(f["n"], strconv.Itoa(k), fmt.Sprintf("%d: rows count up from 1", requests))
	}
	r := TableRow{Eager: d.rate(f["eager_tok_s"]), Best: d.rate(f["best_tok_s"])}
	for _, b := range d.list(f["threshold"]) {
		r.Threshold = append(r.Threshold, d.int(b))
	}
	if len(r.Threshold) != models {
		d.fail(f["threshold"], fmt.Sprintf("%d thresholds", len(r.Threshold)),
			fmt.Sprintf("one for each of %d models", models))
	} else if err := Feasible(r.Threshold, requests); err != nil {
		d.fail(f["threshold"], fmt.Sprint(r.Threshold),
			fmt.Sprintf("thresholds of at least 1 with sum of (B_i - 1) below %d", requests))
	}
	return r
}

// fields returns the values of a mapping with exactly these keys.
func (d *decoder) fields(n node, keys ...string) map[string]node {
	got := make(map[string]node, len(keys))
	if n.kind != mapping {
		d.fail(n, n.describe(), "a mapping")
		return got
	}
	for _, e := range n.entries {
		known := false
		for _, k := range keys {
			known = known || k == e.key
		}
		if !known {
			d.fail(e.value, "unknown field "+strconv.Quote(e.key), "one of "+strings.Join(keys, ", "))
		}
		if _, twice := got[e.key]; twice {
			d.fail(e.value, "the field twice", "once")
		}
		got[e.key] = e.value
	}
	for _, k := range keys {
		if _, ok := got[k]; !ok {
			d.fail(n, "no field "+strconv.Quote(k), "one")
		}
	}
	return got
}

func (d *decoder) list(n node) []node {
	if n.kind != sequence {
		d.fail(n, n.describe(), "a list")
	}
	return n.items
}

func (d *decoder) text(n node) string {
	if n.kind != text {
		d.fail(n, n.describe(), "text")
	}
	return n.text
}

func (d *decoder) float(n node) float64 {
	if n.kind != numeral || math.IsNaN(n.number) || math.IsInf(n.number, 0) {
		d.fail(n, n.describe(), "a number")
		return 0
	}
	return n.number
}

func (d *decoder) int(n node) int {
	x := d.float(n)
	if x != math.Trunc(x) || math.Abs(x) > math.MaxInt32 {
		d.fail(n, n.describe(), "a whole number")
		return 0
	}
	return int(x)
}

// rate reads a throughput, tok/s.
func (d *decoder) rate(n node) float64 {
	x := d.float(n)
	if x < 0 {
		d.fail(n, n.describe(), "a throughput")
	}
	return x
}

// duration reads milliseconds, to the nanosecond.
func (d *decoder) duration(n node) time.Duration {
	ns := math.Round(d.float(n) * float64(time.Millisecond))
	if !(ns >= 1 && ns < 1<<53) {
		d.fail(n, n.describe(), "a time of at least a nanosecond, in milliseconds")
		return 0
	}
	return time.Duration(ns)
}

func (d *decoder) matrix(n node) [][]float64 {
	var rows [][]float64
	for _, r := range d.list(n) {
		var row []float64
		for _, x := range d.list(r) {
			row = append(row, d.float(x))
		}
		rows = append(rows, row)
	}
	return rows
}
