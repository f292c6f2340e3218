package markov

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustTable(t *testing.T, m Model, most int, search Search, o Options) *Table {
	t.Helper()
	table, err := BuildTable(t.Context(), m, []string{"small", "large"}, most, search, o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTableOfThePaper(t *testing.T) {
	table := mustTable(t, paper(.35), 16, SmallEager, Options{})
	want := []int{1, 2, 2, 3, 4, 4, 5, 5, 6, 7, 7, 8, 9, 9, 10, 10}
	if got := table.Thresholds(1); !slices.Equal(got, want) {
		t.Errorf("B_1* = %v, want %v", got, want)
	}
	if got := table.Thresholds(0); slices.Max(got) != 1 {
		t.Errorf("B_0* = %v, want all 1", got)
	}
	within(t, "best at 4", table.Rows[3].Best, 207.9540, 1e-6)
	within(t, "eager at 4", table.Rows[3].Eager, 187.1897, 1e-6)
	for _, c := range []struct{ n, want int }{{-1, 1}, {0, 1}, {1, 1}, {4, 3}, {16, 10}, {17, 10}, {1000, 10}} {
		if got := table.At(c.n)[1]; got != c.want {
			t.Errorf("B_1*(%d) = %d, want %d", c.n, got, c.want)
		}
	}
	if table.Provenance != Provenance || table.Quantum != 300*time.Microsecond {
		t.Errorf("provenance %q, quantum %v", table.Provenance, table.Quantum)
	}
}

// Steps that lengthen with the batch; the reference study has these optima.
func TestTableOfGrowingSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("45 chains")
	}
	table := mustTable(t, growing(.35, 9), 9, SmallEager, Options{})
	if got, want := table.Thresholds(1), []int{1, 2, 2, 3, 3, 4, 5, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("B_1* = %v, want %v", got, want)
	}
}

func TestTableDoesNotDependOnWorkers(t *testing.T) {
	want := mustTable(t, paper(.2), 14, SmallEager, Options{Workers: 1})
	for _, workers := range []int{2, 5} {
		if got := mustTable(t, paper(.2), 14, SmallEager, Options{Workers: workers}); !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: %+v, one: %+v", workers, got, want)
		}
	}
}

func TestSeededTable(t *testing.T) {
	for _, p := range []float64{.1, .35} {
		want := mustTable(t, paper(p), 24, SmallEager, Options{})
		got := mustTable(t, paper(p), 24, Seeded, Options{})
		for i := range want.Rows {
			if relative(got.Rows[i].Best, want.Rows[i].Best) > 1e-9 {
				t.Errorf("p = %v, N = %d: seeded %+v, exhaustive %+v", p, i+1, got.Rows[i], want.Rows[i])
			}
		}
		if got.Provenance != Provenance+", seeded search" {
			t.Errorf("provenance %q", got.Provenance)
		}
	}
}

// From N = 50 on the eager plateau is a second maximum; the seeded search must not settle on it.
func TestSeededTablePastThePlateau(t *testing.T) {
	if testing.Short() {
		t.Skip("300 chains")
	}
	m := Model{R2R(.35), Fixed(12*time.Millisecond, 55*time.Millisecond)}
	got := mustTable(t, m, 52, Seeded, Options{})
	for _, n := range []int{50, 52} {
		want := mustBest(t, m, n, SmallEager, Options{})
		if relative(got.Rows[n-1].Best, want.Throughput) > 1e-9 {
			t.Errorf("N = %d: seeded %+v, exhaustive %v at %v", n, got.Rows[n-1], want.Throughput, want.Threshold)
		}
	}
}

func TestBuildTableErrors(t *testing.T) {
	names := []string{"a", "b"}
	if _, err := BuildTable(t.Context(), paper(.2), names[:1], 4, SmallEager, Options{}); !errors.Is(err, ErrModel) {
		t.Errorf("names: %v", err)
	}
	if _, err := BuildTable(t.Context(), paper(.2), names, 0, SmallEager, Options{}); !errors.Is(err, ErrModel) {
		t.Errorf("no rows: %v", err)
	}
	if _, err := BuildTable(t.Context(), paper(.2), names, 4, "lucky", Options{}); !errors.Is(err, ErrMethod) {
		t.Errorf("search: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, search := range []Search{SmallEager, Seeded} {
		if _, err := BuildTable(ctx, paper(.2), names, 4, search, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

// What is written is read back to the bit.
func TestTableRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(2, 4).Draw(t, "models")
		most := rapid.IntRange(1, 5).Draw(t, "rows")
		want := &Table{
			Provenance: rapid.String().Draw(t, "provenance"),
			Routing:    matrices(t, m),
			Quantum:    time.Duration(rapid.Int64Range(1, 1<<42).Draw(t, "quantum")),
		}
		for range m {
			steps := 1
			if rapid.Bool().Draw(t, "growing") {
				steps = most + rapid.IntRange(0, 2).Draw(t, "more")
			}
			model := TableModel{Name: rapid.String().Draw(t, "name")}
			for range steps {
				model.Step = append(model.Step, time.Duration(rapid.Int64Range(1, 1<<42).Draw(t, "step")))
			}
			want.Models = append(want.Models, model)
		}
		for n := 1; n <= most; n++ {
			eager := rapid.Float64Range(0, 1e9).Draw(t, "eager")
			want.Rows = append(want.Rows, TableRow{
				Threshold: thresholds(t, m, n), Eager: eager, Best: eager + rapid.Float64Range(0, 1e9).Draw(t, "gain"),
			})
		}
		var file bytes.Buffer
		if err := want.Write(&file); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTable(bytes.NewReader(file.Bytes()), "table.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, file.String())
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v\n%s", got, want, file.String())
		}
	})
}

// A computed table survives its file, and the file says what it should.
func TestTableFile(t *testing.T) {
	table := mustTable(t, paper(.35), 4, SmallEager, Options{})
	var file bytes.Buffer
	if err := table.Write(&file); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"schema: trbench.threshold/1\n", "provenance: \"computed: exact DTMC, paper appendix D\"\n",
		"  - {name: \"small\", step_ms: [6]}\n", "  - {name: \"large\", step_ms: [27.9]}\n", "quantum_ms: 0.3\n",
		"p: 0.35 #", "routing: [[0.65, 0.35], [1, 0]]\n", "committed: [[1, 0], [1, 0]]\n",
		"  - {n: 4, threshold: [1, 3], eager_tok_s: 187.18965",
	} {
		if !strings.Contains(file.String(), line) {
			t.Errorf("no %q in\n%s", line, file.String())
		}
	}
	read, err := ReadTable(&file, "table.yaml")
	if err != nil || !reflect.DeepEqual(read, table) {
		t.Errorf("%+v, %v, want %+v", read, err, table)
	}
	again, err := Best(t.Context(), read.Model(), 4, SmallEager, Options{Quantum: read.Quantum})
	if err != nil || again.Throughput != table.Rows[3].Best {
		t.Errorf("recomputed from the file: %v, %v", again.Throughput, err)
	}
}

const goodTable = `# a comment
schema: trbench.threshold/1
provenance: by hand
models:
  - name: small
    step_ms: [6]
  - {name: large, step_ms: [27.9, 28, 29]}
quantum_ms: 0.1
p: 0.35
routing: [[0.65, 0.35], [1, 0]]
committed: [[1, 0], [1, 0]]
rows:
  - {n: 1, threshold: [1, 1], eager_tok_s: 63.5, best_tok_s: 63.5}
  - {n: 2, threshold: [1, 2], eager_tok_s: 98.9, best_tok_s: 110.3}
`

func TestReadTableErrors(t *testing.T) {
	if _, err := ReadTable(strings.NewReader(goodTable), "good.yaml"); err != nil {
		t.Fatalf("the good table: %v", err)
	}
	for _, c := range []struct{ name, from, to, place, says string }{
		{"schema", "threshold/1", "threshold/2",
			"t.yaml:2: schema", "found trbench.threshold/2, wanted trbench.threshold/1"},
		{"no schema", "schema: trbench.threshold/1\n", "", `t.yaml:2`, `found no field "schema"`},
		{"unknown field", "quantum_ms: 0.1", "quantum_ms: 0.1\nquantums: 3",
			`t.yaml:9: quantums`, `found unknown field "quantums", wanted one of schema`},
		{"unknown in row", "best_tok_s: 63.5", "best_tok_s: 63.5, x: 1",
			`t.yaml:13: rows[0].x`, `found unknown field "x"`},
		{"twice", "p: 0.35", "p: 0.35\np: 0.35", "t.yaml:10: ", ""},
		{"gap", "n: 2,", "n: 3,", "t.yaml:14: rows[1].n", "found 3, wanted 2: rows count up from 1"},
		{"infeasible", "[1, 2]", "[2, 2]",
			"t.yaml:14: rows[1].threshold", "found [2 2], wanted thresholds of at least 1 with sum of (B_i - 1) below 2"},
		{"zero", "[1, 2]", "[1, 0]", "rows[1].threshold", "found [1 0]"},
		{"three", "[1, 2]", "[1, 1, 1]", "rows[1].threshold", "found 3 thresholds, wanted one for each of 2 models"},
		{"fraction", "[1, 2]", "[1, 1.5]", `t.yaml:14: rows[1].threshold[1]`, `found "1.5", wanted a whole number`},
		{"huge", "[1, 2]", "[1, 99999999999]", "", "wanted a whole number"},
		{"text", "[1, 2]", "[1, two]", `rows[1].threshold[1]`, `found "two", wanted a number`},
		{"scalar", "[1, 2]", "2", `rows[1].threshold`, `found "2", wanted a list`},
		{"not a number", "110.3", ".nan", "rows[1].best_tok_s", "found \".nan\", wanted a number"},
		{"infinite", "110.3", ".inf", "", "wanted a number"},
		{"negative", "eager_tok_s: 98.9", "eager_tok_s: -98.9",
			"rows[1].eager_tok_s", "found \"-98.9\", wanted a throughput"},
		{"row is a list", "{n: 1, threshold: [1, 1], eager_tok_s: 63.5, best_tok_s: 63.5}", "[1]",
			"t.yaml:13: rows[0]", "found a list, wanted a mapping"},
		{"a mapping", "[[0.65, 0.35], [1, 0]]", "{a: 1}", "t.yaml:10: routing", "found a mapping, wanted a list"},
		{"name", "name: small", "name: [small]", "t.yaml:5: models[0].name", "found a list, wanted text"},
		{"name is a number", "name: small", "name: 7", `models[0].name`, `found "7", wanted text`},
		{"null", "provenance: by hand", "provenance:", "t.yaml:3: provenance", "found \"null\", wanted text"},
		{"few steps", "[27.9, 28, 29]", "[]", "t.yaml:7: models[1].step_ms", "found 0 step times"},
		{"no step", "step_ms: [6]", "step_ms: [0]", "t.yaml:6: models[0].step_ms[0]", "found \"0\", wanted a time"},
		{"long step", "step_ms: [6]", "step_ms: [1e300]", "", "wanted a time"},
		{"row sum", "[0.65, 0.35]", "[0.75, 0.35]",
			"t.yaml:10: routing", "found invalid model: row 0 of P sums to 1.1, want 1"},
		{"p", "p: 0.35", "p: 0.3", "t.yaml:9: p", "found 0.3, wanted 0.35"},
		{"models", "  - {name: large, step_ms: [27.9, 28, 29]}\n", "",
			"t.yaml:5: models", "found 1 models, wanted the 2 of routing"},
		{"empty", goodTable, "", "t.yaml", "found an empty file, wanted one YAML document"},
		{"a scalar", goodTable, "seven", `t.yaml:1`, `found "seven", wanted a mapping`},
		{"two documents", "# a comment", "a: 1\n---\n", "", "wanted one YAML document"},
		{"syntax", "rows:", "rows: [", "", "wanted one YAML document"},
		{"alias", "name: small", "name: *small", "models[0].name", ""},
		{"tag", "[1, 2]", "!!set [1, 2]", "t.yaml:14: ", ""},
		{"long", "# a comment", strings.Repeat("#", maxTableBytes), "t.yaml", "found more, wanted at most 1 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadTable(strings.NewReader(strings.Replace(goodTable, c.from, c.to, 1)), "t.yaml")
			var table *TableError
			if !errors.As(err, &table) || !errors.Is(err, ErrTable) ||
				!strings.Contains(err.Error(), c.place) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one at %q with %q", err, c.place, c.says)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestReadTablePassesReadErrorsOn(t *testing.T) {
	if _, err := ReadTable(brokenReader{}, "t.yaml"); err == nil || err.Error() != "t.yaml: disk on fire" {
		t.Errorf("error %v", err)
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add([]byte(goodTable))
	f.Add([]byte(strings.Replace(goodTable, "{n: 1,", "{<<: *a, n: 1,", 1)))
	f.Add([]byte("schema: &a !!str trbench.threshold/1\n? [a]\n: b\n"))
	f.Add([]byte("rows:\n- |\n  x\n- >-\n  y\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		table, err := ReadTable(bytes.NewReader(file), "fuzz.yaml")
		if err != nil {
			if !errors.Is(err, ErrTable) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		// What passes the checks can be relied on, and written and read again.
		for i, row := range table.Rows {
			if err := Feasible(row.Threshold, i+1); err != nil || math.IsNaN(row.Best) {
				t.Fatalf("row %d: %+v, %v", i+1, row, err)
			}
		}
		var again bytes.Buffer
		if err := table.Write(&again); err != nil {
			t.Fatal(err)
		}
		back, err := ReadTable(&again, "again.yaml")
		if err != nil || !reflect.DeepEqual(back.Rows, table.Rows) {
			t.Fatalf("read again: %v", err)
		}
	})
}
