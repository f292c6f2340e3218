package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By hand: lengths 1, 1, 2, 3 ended and one cut at 2.
func TestHazard(t *testing.T) {
	var h hazard
	for _, l := range []int{1, 3, 1, 2} {
		h.add(l, true)
	}
	h.add(2, false)
	got, ok := h.geometric()
	if !ok || got.Runs != 4 || got.Mean != 1.75 || got.Longest != 3 {
		t.Errorf("%+v", got)
	}
	if want := (.75*.75*2 + .25*.25 + 1.25*1.25) / 3; math.Abs(got.Variance-want) > 1e-12 ||
		math.Abs(got.Geometric-1.75*.75) > 1e-12 {
		t.Errorf("%+v, want a variance of %g", got, want)
	}
	if _, ok := (&hazard{}).geometric(); ok {
		t.Error("no run, and a test")
	}
}

// Geometric runs, cut ones among them, are taken for what they are: p is uniform. Runs with a memory are not.
func TestGeometricRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(p float64) int {
		n := 1
		for rng.Float64() >= p {
			n++
		}
		return n
	}
	low, index := 0, 0.0
	const tests = 400
	for range tests {
		var h hazard
		for range 300 {
			l := draw(.15)
			if limit := 1 + rng.IntN(40); l > limit {
				h.add(limit, false)
				continue
			}
			h.add(l, true)
		}
		got, _ := h.geometric()
		if got.P < .1 {
			low++
		}
		index += got.Index() / tests
	}
	if low < 20 || low > 65 {
		t.Errorf("%d of %d p-values below .1, want about %d", low, tests, tests/10)
	}
	var fixed, mixed hazard
	for range 500 {
		fixed.add(5, true)
		mixed.add(draw([]float64{.5, .02}[rng.IntN(2)]), true)
	}
	for name, h := range map[string]*hazard{"all of one length": &fixed, "of two kinds": &mixed} {
		got, _ := h.geometric()
		if got.P > 1e-6 || !got.worth() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
