package models

import (
	"math"
	"testing"
)

func TestHourUSD(t *testing.T) {
	shared := Deployment{TP: []int{1, 4}, Shared: true}
	separate := Deployment{TP: []int{1, 4}}
	for _, c := range []struct {
		name   string
		d      Deployment
		prices []float64
		want   float64 // 0: an error
	}{
		{"shared GPUs are paid once", shared, []float64{2}, 8},
		{"the same price twice", shared, []float64{2, 2}, 8},
		{"two prices for one GPU", shared, []float64{1, 2}, 0},
		{"separate", separate, []float64{2}, 10},
		{"cheap GPUs for the small model", separate, []float64{.5, 2}, 8.5},
		{"the large model alone", separate.Only(1), []float64{2}, 8},
		{"three prices", separate, []float64{1, 2, 3}, 0},
	} {
		got, err := c.d.HourUSD(c.prices)
		if (err != nil) != (c.want == 0) || got != c.want {
			t.Errorf("%s: %g, %v; want %g", c.name, got, err, c.want)
		}
	}
}

// 100 tok/s for an hour are 360,000 tokens.
func TestUSDPerMTok(t *testing.T) {
	if got := USDPerMTok(3.6, 100); math.Abs(got-10) > 1e-12 {
		t.Errorf("$3.60 an hour at 100 tok/s: $%g a million, want 10", got)
	}
	for _, g := range GPUs() {
		if usd, ok := AssumedGPUHourUSD(g.Name); !ok || usd <= 0 {
			t.Errorf("%s has no assumed price", g.Name)
		}
	}
}
