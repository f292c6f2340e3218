package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trbench/trbench/results"
	"pgregory.net/rapid"
)

// golden compares with testdata/name, or redraws it where REWRITE is set.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	name = filepath.Join("testdata", name)
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(name, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got.Bytes(), want)
	}
}

func TestGolden(t *testing.T) {
	golden(t, "summary.txt", func(w io.Writer) error { return Summary(w, example(), Options{}) })
	golden(t, "summary.md", func(w io.Writer) error { return Markdown(w, example()) })
	golden(t, "summary.csv", func(w io.Writer) error { return CSV(w, example()) })
}

func TestTablesOnly(t *testing.T) {
	var got bytes.Buffer
	if err := Summary(&got, example(), Options{TablesOnly: true}); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"seed", "warning", "Last column"} {
		if strings.Contains(got.String(), word) {
			t.Errorf("%q is there", word)
		}
	}
	if !strings.HasPrefix(got.String(), "gsm8k: r2r on llama3-8b-70b, closed loop\n") ||
		!strings.Contains(got.String(), "\n\nsharegpt") {
		t.Errorf("got\n%s", got.String())
	}
}

// The widest usual names and figures of any size fit the terminal, and beside prices those of any usual size.
func TestSummaryFitsTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.OneOf(rapid.Float64Range(0.01, 1), rapid.Float64Range(1, 99_999))
		s := &results.Summary{}
		var cost results.Float
		if rapid.Bool().Draw(t, "priced") {
			cost = results.F(rapid.Float64Range(.01, 999).Draw(t, "cost"))
			figure = rapid.Float64Range(5, 9_999) // with one column more, what differs by more than 2,000 doesn't fit
		}
		for _, system := range []string{"tokenrouter", "rpc:sglang-radix", "rpc:vllm-noapc"} {
			d := quantiles(figure.Draw(t, "latency") / 1.8)
			s.Points = append(s.Points, results.Point{
				System: system, Workload: "gsm8k", Concurrency: rapid.IntRange(0, 999).Draw(t, "n"),
				OutputTokS: results.F(figure.Draw(t, "output")), TTFT: d, TPOT: d,
				Failed: rapid.IntRange(0, 1000).Draw(t, "failed"), CostPerMTok: cost,
			})
			s.Points[len(s.Points)-1].Concurrency = s.Points[0].Concurrency
		}
		s.Warnings = []string{rapid.StringMatching(`([a-z]{1,20} ){1,40}`).Draw(t, "warning")}
		var got bytes.Buffer
		if err := Summary(&got, s, Options{}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(got.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
				t.Fatalf("%d columns: %s", n, line)
			}
			if strings.HasSuffix(line, " \n") {
				t.Fatalf("blanks at the end of %q", line)
			}
		}
	})
}

func TestSummaryOfNothing(t *testing.T) {
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return Summary(w, &results.Summary{}, Options{}) },
		func(w io.Writer) error { return Markdown(w, &results.Summary{}) },
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil || got.Len() != 0 {
			t.Errorf("got %q, %v, want nothing", got.String(), err)
		}
	}
}

func TestWithoutTokenRouterNothingIsCompared(t *testing.T) {
	s := &results.Summary{Points: []results.Point{{System: "large-only", Workload: "w", OutputTokS: results.F(3)}}}
	var got bytes.Buffer
	if err := Summary(&got, s, Options{}); err != nil || strings.Contains(got.String(), "vs it") ||
		strings.Contains(got.String(), "Last column") {
		t.Errorf("%v:\n%s", err, got.String())
	}
}

// What CSV writes reads back as the same numbers.
func TestCSVIsExact(t *testing.T) {
	s := example()
	var buf bytes.Buffer
	if err := CSV(&buf, s); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&buf).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(s.Points)+1 {
		t.Fatalf("%d lines, want %d", len(lines), len(s.Points)+1)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		if _, ok := column[name]; ok {
			t.Errorf("column %s is there twice", name)
		}
		column[name] = i
	}
	for i := range s.Points {
		p, line := &s.Points[i], lines[i+1]
		for name, want := range map[string]results.Float{
			"output_tok_s": p.OutputTokS, "duration_s": p.DurationS, "tpot_ms_p99": p.TPOT.Percentile(99),
			"ttft_ms_mean": p.TTFT.MeanValue(), "goodput_req_s": p.GoodputReqS,
		} {
			cell := line[column[name]]
			if x, ok := want.Get(); !ok && cell != "" || ok && cell != strconv.FormatFloat(x, 'g', -1, 64) {
				t.Errorf("point %d, %s: %q, want %v", i, name, cell, want)
			}
		}
	}
	if first := lines[1]; first[column["threshold"]] != "1 3" || first[column["batch_mean"]] != "3.5 -" {
		t.Errorf("lists: %q, %q", first[column["threshold"]], first[column["batch_mean"]])
	}
}

func TestCSVOfASweep(t *testing.T) {
	s := &results.Summary{Points: []results.Point{
		{
			System: "a", Axes: results.Axes{{Key: "switch_rate", Value: "0.1"}},
			TPOT: &results.Dist{Quantiles: []results.Quantile{{P: 99.9, Value: 3}}},
		},
		{System: "b", Axes: results.Axes{{Key: "rpc.rtt_us", Value: "50"}}},
	}}
	var buf bytes.Buffer
	if err := CSV(&buf, s); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(buf.String(), "\n")
	if !strings.HasSuffix(lines[0], ",axis_switch_rate,axis_rpc.rtt_us") ||
		!strings.Contains(lines[0], ",tpot_ms_p99.9,") ||
		!strings.HasSuffix(lines[1], ",0.1,") || !strings.HasSuffix(lines[2], ",,50") {
		t.Errorf("got\n%s", buf.String())
	}
}

func TestNumbers(t *testing.T) {
	f := results.F
	for _, c := range []struct{ got, want string }{
		{number(results.Float{}), "-"},
		{number(f(0)), "0.00"},
		{number(f(0.0012)), "0.0012"},
		{number(f(6.018)), "6.02"},
		{number(f(9.996)), "10.0"},
		{number(f(999.94)), "999.9"},
		{number(f(999.96)), "1,000"},
		{number(f(-1234567.8)), "-1,234,568"},
		{times(f(64.15)), "64.2x"},
		{times(f(2.014)), "2.01x"},
		{times(results.Float{}), "-"},
		{percent(f(-0.436)), "-43.6 %"},
		{percent(f(0.0312)), "+3.1 %"},
		{percent(f(-0.0001)), "+0.0 %"},
		{percent(f(12.5)), "+1,250 %"},
		{percent(f(119)), "120.0x"},
		{percent(results.Float{}), "-"},
		{share(f(0.21)), "21.0 %"},
		{share(results.Float{}), "-"},
		{hundredths(f(161.26)), "161.26"},
		{hundredths(f(123456.4)), "123,456"},
		{hundredths(results.Float{}), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// full refuses everything after n bytes.
type full struct{ n int }

var errFull = errors.New("disk full")

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfTheWriterComeBack(t *testing.T) {
	for _, n := range []int{0, 100, 1000, 3000} {
		for name, write := range map[string]func(io.Writer) error{
			"Summary":  func(w io.Writer) error { return Summary(w, example(), Options{}) },
			"Markdown": func(w io.Writer) error { return Markdown(w, example()) },
			"CSV":      func(w io.Writer) error { return CSV(w, example()) },
		} {
			if err := write(&full{n}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: %v", name, n, err)
			}
		}
	}
}
