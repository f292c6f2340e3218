package metrics

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every value falls into a bucket that holds it and is no wider than promised.
func TestHistogramBuckets(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, v int64) {
		var h Histogram
		h.Record(v)
		got := h.Quantile(0.5)
		if off := math.Abs(got - float64(v)); off > float64(v)/(2*subSize) {
			t.Fatalf("%d stands as %v, off by %v", v, got, off)
		}
		if v < 2*subSize && got != float64(v) {
			t.Fatalf("%d stands as %v, want it exact", v, got)
		}
	}
	for shift := range 63 {
		for _, near := range []int64{-1, 0, 1} {
			check(t, max(int64(1)<<shift+near, 0))
		}
	}
	check(t, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Int64Range(0, math.MaxInt64).Draw(t, "v")) })
}

// A quantile is that of the values themselves but for the width of a bucket; count and mean are exact.
func TestHistogramAgainstAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Histogram
		var all []float64
		for range rapid.IntRange(1, 30).Draw(t, "groups") {
			v := rapid.Int64Range(0, 1<<rapid.IntRange(1, 40).Draw(t, "bits")).Draw(t, "v")
			n := rapid.IntRange(0, 5).Draw(t, "n")
			h.RecordN(v, uint64(n))
			all = append(all, slices.Repeat([]float64{float64(v)}, n)...)
		}
		slices.Sort(all)
		if h.Count() != uint64(len(all)) {
			t.Fatalf("count %d, want %d", h.Count(), len(all))
		}
		if len(all) == 0 {
			if !math.IsNaN(h.Mean()) || !math.IsNaN(h.Quantile(0.5)) || h.Describe(time.Millisecond, nil) != nil {
				t.Fatal("of nothing: want NaN and nil")
			}
			return
		}
		if got, want := h.Mean(), Mean(all); !near(got, want) {
			t.Fatalf("mean %v, want %v", got, want)
		}
		for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.99, 1} {
			got, want := h.Quantile(q), Percentile(all, q)
			if math.Abs(got-want) > want/(2*subSize)+1e-9*want {
				t.Fatalf("quantile %v: got %v, want %v", q, got, want)
			}
		}
	})
}

func TestHistogramMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Int64Range(0, 1<<50))
		var a, b, both Histogram
		for _, v := range values.Draw(t, "a") {
			a.Record(v)
			both.Record(v)
		}
		for _, v := range values.Draw(t, "b") {
			b.Record(v)
			both.Record(v)
		}
		a.Merge(&b)
		if !reflect.DeepEqual(a, both) {
			t.Fatal("merged, it is not what one histogram of all values is")
		}
	})
}

// The sum of large values does not wrap.
func TestHistogramSumIsWide(t *testing.T) {
	var h Histogram
	h.RecordN(math.MaxInt64, 1<<40)
	if got := h.Mean(); !near(got, math.MaxInt64) {
		t.Errorf("mean %v, want %v", got, float64(math.MaxInt64))
	}
}

func TestHistogramRefusesNegativeValues(t *testing.T) {
	defer func() {
		if got, want := recover(), "metrics: histogram value -1: want 0 or more"; got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	var h Histogram
	h.Record(-1)
}

func TestHistogramDescribe(t *testing.T) {
	var h Histogram
	h.RecordN(1000, 99)
	h.RecordN(2000, 1)
	d := h.Describe(time.Microsecond, nil)
	if d.Mean != 1.01 || d.Percentile(50).Or(0) != 1 || !near(d.Percentile(99).Or(0), 1.01) {
		t.Errorf("%+v, want mean 1.01, p50 1, p99 1.01", d)
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	var values [1024]int64
	for i := range values {
		values[i] = int64(6_000_000 + 53_000*i)
	}
	i := 0
	for b.Loop() {
		h.RecordN(values[i&1023], 1)
		i++
	}
}
