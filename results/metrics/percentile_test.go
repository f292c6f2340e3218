package metrics

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// near says that a and b differ by rounding at most.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) }

func TestPercentileIsNumpys(t *testing.T) {
	var squares []float64
	for i := 1; i <= 201; i++ {
		squares = append(squares, float64(i*i))
	}
	for _, c := range []struct {
		values []float64
		p      float64
		want   float64 // numpy.percentile(values, p); the long ones in exact fractions
	}{
		{[]float64{10, 7, 4, 3, 2, 1}, 50, 3.5}, // the example of numpy's documentation
		{[]float64{1, 2, 3, 4}, 25, 1.75},
		{[]float64{1, 2, 3, 4, 5}, 40, 2.6},
		{[]float64{15, 20, 35, 40, 50}, 40, 29},
		{[]float64{7}, 99, 7},
		{[]float64{1, 2}, 0, 1},
		{[]float64{1, 2}, 100, 2},
		{[]float64{12.7, 3.1, 55.02, 8.25, 19.9, 27.9, 6.0}, 50, 12.7},
		{[]float64{12.7, 3.1, 55.02, 8.25, 19.9, 27.9, 6.0}, 90, 38.748000000000005},
		{[]float64{12.7, 3.1, 55.02, 8.25, 19.9, 27.9, 6.0}, 99, 53.3928},
		{[]float64{12.7, 3.1, 55.02, 8.25, 19.9, 27.9, 6.0}, 99.9, 54.85728},
		{squares, 90, 32761}, // 181^2: the rank is whole
		{squares, 99, 39601},
		{squares, 99.5, 40000},
	} {
		slices.Sort(c.values)
		if got := Percentile(c.values, c.p/100); !near(got, c.want) {
			t.Errorf("p%g of %v: got %v, want %v", c.p, c.values, got, c.want)
		}
	}
	if !math.IsNaN(Percentile(nil, 0.5)) {
		t.Error("of nothing: want NaN")
	}
}

func TestPercentileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 50).Draw(t, "values")
		slices.Sort(values)
		low, high := rapid.Float64Range(0, 1).Draw(t, "q"), rapid.Float64Range(0, 1).Draw(t, "q")
		if low > high {
			low, high = high, low
		}
		a, b := Percentile(values, low), Percentile(values, high)
		if a < values[0] || b > values[len(values)-1] {
			t.Fatalf("%v, %v are not among %v", a, b, values)
		}
		if a > b && !near(a, b) {
			t.Fatalf("q=%v gives %v, above q=%v: %v", low, a, high, b)
		}
		doubled := make([]float64, len(values))
		for i := range values {
			doubled[i] = 2 * values[i]
		}
		if got := Percentile(doubled, low); got != 2*a {
			t.Fatalf("of all values doubled: %v, want %v", got, 2*a)
		}
	})
}

func TestMeanAndStdDev(t *testing.T) {
	values := []float64{2, 4, 4, 4, 5, 5, 7, 9}
	if Mean(values) != 5 || !near(StdDev(values), math.Sqrt(32.0/7)) {
		t.Errorf("mean %v, standard deviation %v, want 5 and sqrt(32/7)", Mean(values), StdDev(values))
	}
	if !math.IsNaN(Mean(nil)) || !math.IsNaN(StdDev(values[:1])) {
		t.Error("mean of nothing and standard deviation of one: want NaN")
	}
}

// The figures of a sample don't depend on its order, to the last bit.
func TestDescribeDoesNotDependOnOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 1000)
	for i := range values {
		values[i] = r.ExpFloat64()
	}
	want := Describe(slices.Clone(values), []float64{95, 50})
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	if got := Describe(values, []float64{50, 95}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var keys []float64
	for _, q := range want.Quantiles {
		keys = append(keys, q.P)
	}
	if !slices.Equal(keys, []float64{50, 90, 95, 99}) {
		t.Errorf("percentiles %v", keys)
	}
	if Describe(nil, nil) != nil {
		t.Error("of nothing: want nil")
	}
}

func TestParsePercentiles(t *testing.T) {
	got, err := ParsePercentiles("99.9, 50,90,50")
	if err != nil || !slices.Equal(got, []float64{50, 90, 99.9}) {
		t.Errorf("got %v, %v", got, err)
	}
	for list, want := range map[string]string{
		"":      `percentiles "": "": want numbers above 0 and up to 100, such as 50,90,99.9`,
		"50,,9": `percentiles "50,,9": "": want numbers above 0 and up to 100, such as 50,90,99.9`,
		"p50":   `percentiles "p50": "p50": want numbers above 0 and up to 100, such as 50,90,99.9`,
		"0":     `percentiles "0": "0": want numbers above 0 and up to 100, such as 50,90,99.9`,
		"NaN":   `percentiles "NaN": "NaN": want numbers above 0 and up to 100, such as 50,90,99.9`,
		"100.1": `percentiles "100.1": "100.1": want numbers above 0 and up to 100, such as 50,90,99.9`,
	} {
		if _, err := ParsePercentiles(list); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", list, err, want)
		}
	}
}

func FuzzParsePercentiles(f *testing.F) {
	f.Add("50,90,99.9")
	f.Fuzz(func(t *testing.T, list string) {
		found, err := ParsePercentiles(list)
		if err != nil {
			return
		}
		for i, p := range found {
			if !(p > 0 && p <= 100) || i > 0 && found[i-1] >= p {
				t.Fatalf("%q: %v", list, found)
			}
		}
	})
}

// From order statistics: the largest of n lies above the percentile p with probability 1 - (p/100)^n.
func TestBounded(t *testing.T) {
	for p, want := range map[float64]int{50: 6, 90: 36, 95: 72, 99: 368, 99.9: 3688} {
		if got := Bounded(p); got != want {
			t.Errorf("p%g: got %d, want %d", p, got, want)
		}
		if above := 1 - math.Pow(p/100, float64(want)); above < 0.975 {
			t.Errorf("p%g: %d values bound it with %v only", p, want, above)
		}
		if above := 1 - math.Pow(p/100, float64(want-1)); above >= 0.975 {
			t.Errorf("p%g: %d values are enough", p, want-1)
		}
	}
	if got := Bounded(100); got != math.MaxInt {
		t.Errorf("p100: got %d, want never", got)
	}
}

func TestDoubt(t *testing.T) {
	want := "P99 of ttft over 200 requests: fewer than 368, its 95 % interval has no upper bound"
	if got := Doubt("ttft", 99, 200); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Doubt("ttft", 99, 368) != "" || Doubt("ttft", 99, 0) != "" {
		t.Error("a doubt over enough values, or over none")
	}
}

// The table of Student's t: t(0.975) is 12.7062 for one degree of freedom, 2.7764 for four.
func TestMeanCI(t *testing.T) {
	mean, half := MeanCI([]float64{1, 3})
	if mean != 2 || math.Abs(half-12.7062) > 1e-4 {
		t.Errorf("got %v +- %v, want 2 +- 12.7062", mean, half)
	}
	mean, half = MeanCI([]float64{10, 11, 12, 13, 14})
	if mean != 12 || math.Abs(half-2.7764*math.Sqrt(2.5/5)) > 1e-4 {
		t.Errorf("got %v +- %v, want 12 +- 1.9632", mean, half)
	}
	if _, half := MeanCI([]float64{1}); !math.IsNaN(half) {
		t.Errorf("of one repeat: %v, want NaN", half)
	}
}
