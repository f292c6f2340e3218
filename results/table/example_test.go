package table

import (
	"math"

	"github.com/trbench/trbench/results"
)

// example is a made-up summary: two workloads, two concurrencies, five systems, and a hole or two.
func example() *results.Summary {
	s := &results.Summary{Run: "0f3a", Clock: "virtual", Seed: 1}
	systems := []struct {
		name  string
		speed float64 // output of one request at a time, tok/s
		share float64 // of it that is kept at N
	}{
		{"tokenrouter", 73.02, 0.9}, {"rpc:vllm-apc", 34.5, 0.75}, {"rpc:vllm-noapc", 17.1, 0.45},
		{"rpc:sglang-radix", 41, 0.6}, {"large-only", 18.18, 0.98},
	}
	for i, workload := range []string{"gsm8k", "sharegpt"} {
		for _, sys := range systems {
			for _, n := range []int{4, 64} {
				x := math.Pow(float64(n), sys.share) * sys.speed / float64(i+1)
				tpot := 1000 * float64(n) / x
				p := results.Point{
					System: sys.name, Algorithm: "r2r", Workload: workload, Pair: "llama3-8b-70b", Concurrency: n,
					Requests: 200, OutputTokens: 25000, DurationS: results.F(25000 / x), OutputTokS: results.F(x),
					SteadyTokS: results.F(1.02 * x), LargeShare: results.F(0.1),
					TTFT: quantiles(tpot * 3), TPOT: quantiles(tpot), E2E: quantiles(tpot * 130), ITL: quantiles(tpot),
					Source: "simulated", Latency: "a100", Arrival: "closed",
				}
				if sys.name == "large-only" {
					p.Algorithm = ""
				}
				if i == 1 && sys.name == "tokenrouter" { // a replayed pair
					p.Agreement, p.NLL = results.F(0.8+float64(n)/1000), results.F(1.3645)
				}
				if i == 1 && sys.name == "large-only" {
					p.Agreement = results.F(1)
				}
				s.Points = append(s.Points, p)
			}
		}
	}
	s.Points[0].Threshold, s.Points[0].BatchMean = []int{1, 3}, []results.Float{results.F(3.5), {}}
	s.Points[0].Switch = &results.Switch{Wait: quantiles(20)}
	s.Points[3].TPOT = nil
	s.Points[3].Failed = 2
	s.Comparisons = results.Comparisons(s.Points)
	s.Claims = []results.Claim{
		{
			Source: "paper", ID: "ablation/n4/eager", Published: results.F(161.26), Ours: results.F(160.9),
			Difference: results.F(-0.0022), Kind: "fitted", Status: "reproduced",
		},
		{Source: "article", ID: "throughput/max", Published: results.F(64.15), Kind: "predicted", Status: "not"},
	}
	s.Warnings = []string{
		"P99 of ttft, tpot and e2e over 200 requests: fewer than 368, its 95 % interval has no upper bound (20 of 20 points)",
	}
	return s
}

func quantiles(mean float64) *results.Dist {
	return &results.Dist{Mean: mean, Quantiles: []results.Quantile{
		{P: 50, Value: 0.9 * mean}, {P: 90, Value: 1.3 * mean}, {P: 99, Value: 1.8 * mean},
	}}
}
