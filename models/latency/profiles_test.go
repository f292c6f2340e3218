package latency

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/testutil"
	"github.com/trbench/trbench/models"
)

// reference opens a table of the reference data, which lies beside the repository where there is one.
func reference(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(testutil.Reference(t, "step-latency", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range rows[1:] {
		record := make(map[string]string)
		for i, column := range rows[0] {
			record[column] = row[i]
		}
		out = append(out, record)
	}
	return out
}

func number(t *testing.T, r map[string]string, column string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(r[column], 64)
	if err != nil {
		t.Fatalf("%s: %v", column, err)
	}
	return x
}

func integer(t *testing.T, r map[string]string, column string) int { return int(number(t, r, column)) }

// profileOf finds the embedded profile of a reference row; false for the model that has no decode table.
func profileOf(t *testing.T, r map[string]string) (*Profile, bool) {
	t.Helper()
	gpu, _, _ := strings.Cut(r["system"], "_")
	p, err := Lookup(gpu, r["model"], integer(t, r, "tp"))
	if err != nil && r["model"] != "Llama-2-7B" {
		t.Fatal(err)
	}
	return p, err == nil
}

// Every cell of the reference tables comes back to the last digit.
func TestEmbeddedTablesAreTheReferenceOnes(t *testing.T) {
	cells := 0
	for _, r := range reference(t, "decode_steps.csv") {
		p, _ := profileOf(t, r)
		m := p.New()
		got := m.StepTime(decodes(integer(t, r, "batch"), integer(t, r, "context_tokens_per_seq")))
		if want := duration(number(t, r, "step_ms") * nsPerMS); got != want {
			t.Fatalf("%v: %v, want %v", r, got, want)
		}
		if w := m.Extrapolated(); w != nil {
			t.Fatalf("%v: %q", r, w)
		}
		cells++
	}
	for _, r := range reference(t, "prefill_steps.csv") {
		p, ok := profileOf(t, r)
		if !ok {
			continue
		}
		m := p.New()
		got := m.StepTime(extend(integer(t, r, "prompt_tokens"), 0))
		if want := duration(number(t, r, "step_ms") * nsPerMS); got != want {
			t.Fatalf("%v: %v, want %v", r, got, want)
		}
		if w := m.Extrapolated(); w != nil {
			t.Fatalf("%v: %q", r, w)
		}
		cells++
	}
	if want := 75 * (57 + 10); cells != want {
		t.Errorf("%d cells compared, want %d", cells, want)
	}
}

// Affine with the published coefficients is as far from the tables as the fit was reported to be.
func TestAffineFitsAsReported(t *testing.T) {
	affine := make(map[Key]Affine)
	key := func(r map[string]string) Key {
		gpu, _, _ := strings.Cut(r["system"], "_")
		return Key{gpu, canonical(r["model"]), integer(t, r, "tp")}
	}
	type spread struct{ sum, worst, n float64 }
	type record = map[string]string
	compare := func(table string, shape func(record) step.Shape, use func(record) bool) map[Key]spread {
		errors := make(map[Key]spread)
		for _, r := range reference(t, table) {
			if !use(r) {
				continue
			}
			want := number(t, r, "step_ms")
			got := float64(affine[key(r)].StepTime(shape(r))) / nsPerMS
			e := errors[key(r)]
			off := 100 * math.Abs(got-want) / want
			errors[key(r)] = spread{e.sum + off, max(e.worst, off), e.n + 1}
		}
		return errors
	}
	check := func(fit string, errors map[Key]spread, tolerance float64) {
		for _, r := range reference(t, fit) {
			e := errors[key(r)]
			if mean := e.sum / e.n; math.Abs(mean-number(t, r, "mape_pct")) > tolerance ||
				math.Abs(e.worst-number(t, r, "max_err_pct")) > tolerance {
				t.Errorf("%s of %s: mean %.2f %%, worst %.2f %%, reported %s and %s",
					fit, key(r), mean, e.worst, r["mape_pct"], r["max_err_pct"])
			}
		}
	}
	for _, r := range reference(t, "decode_fit.csv") {
		affine[key(r)] = Affine{C0: number(t, r, "c0_ms"), C1: number(t, r, "c1_ms_per_seq"),
			C2: number(t, r, "c2_ms_per_context_token")}
	}
	check("decode_fit.csv", compare("decode_steps.csv", func(r map[string]string) step.Shape {
		return decodes(integer(t, r, "batch"), integer(t, r, "context_tokens_per_seq"))
	}, func(map[string]string) bool { return true }), .02)

	for _, r := range reference(t, "prefill_fit.csv") {
		a := affine[key(r)]
		a.C0 = 0 // the fit alone, without the floor
		a.P0, a.P1, a.P2 = number(t, r, "p0_ms"), number(t, r, "p1_ms_per_token"), number(t, r, "p2_ms_per_token2")
		affine[key(r)] = a
	}
	check("prefill_fit.csv", compare("prefill_steps.csv", func(r map[string]string) step.Shape {
		return extend(integer(t, r, "prompt_tokens"), 0)
	}, func(r map[string]string) bool { return integer(t, r, "prompt_tokens") >= 128 }), .02)
}

// The fitted host overhead is the paper's step less the table's.
func TestHostIsThePapersStepLessTheTable(t *testing.T) {
	for _, c := range []struct {
		model string
		tp    int
		paper float64
		host  float64
	}{{"qwen3-0.6b", 1, 6.0, SmallHost.Seconds()}, {"qwen3-32b", 2, 27.9, LargeHost.Seconds()}} {
		p, err := Lookup("a100", c.model, c.tp)
		if err != nil {
			t.Fatal(err)
		}
		kernels := p.New().StepTime(decodes(1, 1124))
		if left := c.paper - float64(kernels)/nsPerMS; math.Abs(left-c.host*1e3) > .02 {
			t.Errorf("%s: %.3f ms are left of %g, the default is %.3f", c.model, left, c.paper, c.host*1e3)
		}
	}
	if DefaultHost(0) != SmallHost || DefaultHost(1) != LargeHost || DefaultHost(2) != LargeHost {
		t.Error("DefaultHost is not small, large, large")
	}
}

func TestLookupProfiles(t *testing.T) {
	keys := Profiles()
	if len(keys) != 75 {
		t.Errorf("%d profiles, want 75", len(keys))
	}
	if !slices.IsSortedFunc(keys, func(a, b Key) int {
		return strings.Compare(a.GPU+a.Model+strconv.Itoa(a.TP), b.GPU+b.Model+strconv.Itoa(b.TP))
	}) {
		t.Error("profiles are not in order")
	}
	for _, k := range keys {
		if _, err := Lookup(k.GPU, k.Model, k.TP); err != nil {
			t.Error(err)
		}
	}
	if p, err := Lookup("A100-SXM-80GB", "Llama-3.1-70B", 4); err != nil || p.Name() != "llama3-70b tp4 on a100" {
		t.Errorf("aliases: %v, %v", p, err)
	}
	if got := TPs("a100", "Llama-3-70B"); !slices.Equal(got, []int{2, 4, 8}) {
		t.Errorf("TPs = %v, want [2 4 8]", got)
	}
	if got := TPs("a100", "llama2-7b"); got != nil {
		t.Errorf("TPs of a model without a table = %v", got)
	}
	for _, c := range []struct {
		gpu, model string
		tp         int
		want       string
	}{
		{"a100", "llama3-70b", 1, "no step times for llama3-70b tp1 on a100: tabled on TP 2, 4, 8"},
		{"h100", "llama2-7b", 1, "no step times for llama2-7b on h100: tabled are llama2-70b, llama3-70b, llama3-8b, " +
			"qwen2.5-1.5b, qwen2.5-14b, qwen2.5-32b, qwen2.5-72b, qwen2.5-7b, qwen3-0.6b, qwen3-1.7b, qwen3-32b, " +
			"qwen3-4b, qwen3-8b"},
		{"h100", "lama3-8b", 1, `unknown model "lama3-8b": did you mean llama3-8b? (trbench models list shows all)`},
		{"b100", "llama3-8b", 1, `unknown GPU "b100": did you mean a100? (known: a100, h100, h200)`},
	} {
		if _, err := Lookup(c.gpu, c.model, c.tp); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// In the tables as they are: where a row or column grows from one grid point to the next, so does all between.
func TestEmbeddedTablesAreMonotoneWhereTheirGridIs(t *testing.T) {
	for _, k := range Profiles() {
		p, _ := Lookup(k.GPU, k.Model, k.TP)
		m, d := p.New(), p.Steps().Decode
		for i, b := range d.Batch {
			for j, c := range d.ContextTokens[:len(d.StepMS[i])] {
				if j > 0 {
					rises := d.StepMS[i][j] >= d.StepMS[i][j-1]
					before, mid := d.ContextTokens[j-1], (d.ContextTokens[j-1]+c)/2
					x, y, z := m.StepTime(decodes(b, before)), m.StepTime(decodes(b, mid)), m.StepTime(decodes(b, c))
					if rises && !(x <= y && y <= z) || !rises && !(x >= y && y >= z) {
						t.Fatalf("%s: batch %d: %v, %v, %v at contexts %d, %d, %d", k, b, x, y, z, before, mid, c)
					}
				}
				if i > 0 {
					rises := d.StepMS[i][j] >= d.StepMS[i-1][j]
					x, z := m.StepTime(decodes(d.Batch[i-1], c)), m.StepTime(decodes(b, c))
					y := m.StepTime(decodes((d.Batch[i-1]+b)/2, c))
					if rises && !(x <= y && y <= z) || !rises && !(x >= y && y >= z) {
						t.Fatalf("%s: context %d: %v, %v, %v at batches up to %d", k, c, x, y, z, b)
					}
				}
			}
		}
	}
}

// A resume of a few tokens over a long context costs about a decode there, on every table: within a fifth.
func TestAShortResumeCostsAboutADecode(t *testing.T) {
	for _, k := range Profiles() {
		p, _ := Lookup(k.GPU, k.Model, k.TP)
		m := p.New()
		for _, b := range []int{1, 4, 16} {
			var resumes step.Shape
			for range b {
				resumes = plus(resumes, extend(2, 1998))
			}
			resume, decode := m.StepTime(resumes), m.StepTime(decodes(b, 2000))
			if ratio := float64(resume) / float64(decode); ratio < .8 || ratio > 1.2 {
				t.Errorf("%s: %d resumes cost %v, decodes %v", k, b, resume, decode)
			}
		}
	}
}

func TestParseProfilesErrors(t *testing.T) {
	decode := "model,tp,batch,part,1,2\nm,1,1,step_ms,1,2\nm,1,1,attention_ms,0,1\n"
	prefill := "model,tp,part,1,2\nm,1,step_ms,1,2\nm,1,attention_ms,0,1\n"
	if got, err := parseProfiles("g", decode, prefill); err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	swap := strings.NewReplacer
	for _, c := range []struct{ decode, prefill, want string }{
		{swap("1,2\nm", "1,x\nm").Replace(decode), prefill, `decode: line 1: strconv.Atoi: parsing "x"`},
		{swap("step_ms", "steps").Replace(decode), prefill,
			`decode: line 2: part is "steps": step_ms and attention_ms take turns`},
		{swap("0,1\n", "0,x\n").Replace(decode), prefill, `decode: line 3: strconv.ParseFloat: parsing "x"`},
		{swap("m,1,1,", "m,1,y,").Replace(decode), prefill, `decode: line 2: batch: strconv.Atoi: parsing "y"`},
		{swap("m,", "n,").Replace(decode), prefill, "m tp1 on g: decode.batch has 0 values"},
		{decode + "o,1,1,step_ms,1,2\n", prefill, "1 decode and 0 prefill lines left over"},
		{decode, "m,1\n", "prefill: line 1: 2 columns, wanted more than 3"},
		{decode, swap("m,1,", "m,z,").Replace(prefill), `prefill: line 2: tp: strconv.Atoi: parsing "z"`},
	} {
		if _, err := parseProfiles("g", c.decode, c.prefill); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// Every pair that models knows has a default deployment with tables on every GPU.
func TestEveryPairIsTabled(t *testing.T) {
	for _, g := range models.GPUs() {
		for _, pair := range models.Pairs() {
			var allowed [][]int
			for _, c := range pair.Models {
				allowed = append(allowed, TPs(g.Name, c.Name))
			}
			for _, shared := range []bool{true, false} {
				d, err := models.DefaultDeployment(g, pair.Models, allowed, shared, 0)
				if err != nil {
					t.Errorf("%s on %s: %v", pair.Name, g.Name, err)
					continue
				}
				if _, err := Parse(g.Name, pair.Models, d.TP); err != nil {
					t.Errorf("%s on %s: %v", pair.Name, g.Name, err)
				}
			}
		}
	}
}

// No embedded table prices resumes below decodes of the same rows, with or without decodes in the step.
func TestShortExtendsCostDecodes(t *testing.T) {
	for _, gpu := range models.GPUNames() {
		for _, card := range models.Cards() {
			for _, tp := range TPs(gpu, card.Name) {
				p, err := Lookup(gpu, card.Name, tp)
				if err != nil {
					t.Fatal(err)
				}
				m := p.New()
				for _, rows := range []int{1, 2, 7, 16, 64} {
					for _, decodes := range []int{0, rows / 2} {
						for _, context := range []int64{64, 500, 1124, 6000} {
							var s step.Shape
							s.Decodes, s.DecodeContext = decodes, int64(decodes)*context
							for range rows - decodes {
								s.Extends++
								s.ExtendTokens += 3
								s.ExtendWork += 3 * (3 + 2*(context-3))
								s.ExtendContext += context
							}
							all := step.Shape{Decodes: rows, DecodeContext: int64(rows) * context}
							if got, least := m.StepTime(s), m.StepTime(all); got < least {
								t.Errorf("%s: %d decodes and %d resumes at context %d: %v, decodes alone %v", p.Name(), decodes, rows-decodes, context, got, least)
							}
						}
					}
				}
			}
		}
	}
}
