package markov_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/trbench/trbench/sim/markov"
)

// The paper's pair: R2R hands 35 % of the tokens over, a step takes 6.0 or 27.9 ms.
var pair = markov.Model{
	Routing: markov.R2R(.35),
	Step:    markov.Fixed(6*time.Millisecond, 27900*time.Microsecond),
}

func ExampleSolve() {
	r, err := markov.Solve(context.Background(), pair, 4, []int{1, 3}, markov.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.4f tok/s over %d states of %v\n", r.Throughput, r.States, r.Quantum)
	fmt.Printf("busy %.2f, batches of %.2f\n", r.Busy, r.MeanBatch)
	// Output:
	// 207.9540 tok/s over 14 states of 300µs
	// busy [0.64 0.64], batches of [1.96 3.19]
}

func ExampleBest() {
	best, err := markov.Best(context.Background(), pair, 4, markov.SmallEager, markov.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range best.Curve {
		fmt.Printf("%v %.1f\n", p.Threshold, p.Throughput)
	}
	fmt.Printf("best %v, %.1f %% over eager\n", best.Threshold, 100*best.Gain())
	// Output:
	// [1 1] 187.2
	// [1 2] 195.4
	// [1 3] 208.0
	// [1 4] 190.7
	// best [1 3], 11.1 % over eager
}

func ExampleBuildTable() {
	table, err := markov.BuildTable(context.Background(), pair, []string{"small", "large"}, 8,
		markov.SmallEager, markov.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("large model, by active requests:", table.Thresholds(1))
	fmt.Println("for 100 requests:", table.At(100))
	if err := table.Write(io.Discard); err != nil { // to a file, for ReadTable
		fmt.Println(err)
	}
	// Output:
	// large model, by active requests: [1 2 2 3 4 4 5 5]
	// for 100 requests: [1 5]
}
