package calibrate

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// FitContention finds the kappa that a log was made with, and says so where no step tells.
func TestFitContention(t *testing.T) {
	for _, kappa := range []float64{0, .47, 1.2} {
		var log strings.Builder
		log.WriteString("model,start_us,duration_us,batch,new_tokens,context_tokens\n")
		at := 0.
		for i := range 400 {
			b := 1 + i%3
			alone := 1000 + 50*float64(b)
			// Every other step has the peer's beside it, all along.
			d := alone
			if i%2 == 0 {
				d *= 1 + kappa
				fmt.Fprintf(&log, "l,%.3f,%.3f,1,1,100\n", at-1, d+2)
			} else {
				fmt.Fprintf(&log, "l,%.3f,%.3f,1,1,100\n", at+d+1, 1.) // elsewhere
			}
			fmt.Fprintf(&log, "s,%.3f,%.3f,%d,%d,%d\n", at, d, b, b, 100*b)
			at += d + 10
		}
		steps, err := ReadSteps("log", strings.NewReader(log.String()))
		if err != nil {
			t.Fatal(err)
		}
		// The peer's own steps tell nothing: leave the small model's.
		got, ok := FitContention(steps)
		if !ok || math.Abs(got-kappa) > .05 {
			t.Errorf("kappa %g, %v; want %g", got, ok, kappa)
		}
	}
	apart := "model,start_us,duration_us,batch,new_tokens,context_tokens\n"
	for i := range 100 {
		apart += fmt.Sprintf("s,%d,10,1,1,100\nl,%d,10,1,1,100\n", 100*i, 100*i+50)
	}
	steps, err := ReadSteps("log", strings.NewReader(apart))
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := FitContention(steps); ok || k != 0 {
		t.Errorf("steps that never overlap tell kappa %g, %v", k, ok)
	}
}
