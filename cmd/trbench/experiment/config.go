package experiment

import (
	"time"

	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/workloads/arrival"
)

// Config is everything that decides what a run does. Each field is one key: see keys.go for its name and help.
type Config struct {
	Engine  string
	Seed    uint64
	Repeat  int // runs of each point, each under its own seed
	Workers int // points at once; does not change a result

	Workload []string
	Data     []string // files, in the place of workloads
	Format   string
	Sampler  string
	Chat     bool // prompts are rendered in the chat template
	Requests int  // a point
	Warmup   int
	MaxFail  int

	Pair         string
	Small, Large string // models, in the place of a pair
	Latency      string
	Modulation   string

	Algorithm    []string
	Program      string  // a Starlark file, in the place of an algorithm
	AlgThreshold float64 // of the algorithm's rule; 0 is the published default
	Weights      []float64
	Draft        int // tokens drafted before a verification
	Adaptive     bool
	Greedy       bool
	Defer        string // spec-cascade's rule
	Step         int    // tokens of a reasoning step
	SwitchRate   float64
	ReturnRate   float64 // < 0: follows from the algorithm
	Signal       string
	Correlation  float64   // of a bursty signal
	Acceptance   []float64 // of a draft, where it is drawn, by its place in the pass

	Temperature, TopP float64 // --engine cpu
	TopK              int

	System      []string
	Concurrency []int
	Arrival     arrival.Spec

	Threshold   string // eager, auto, K, a vector, or a file
	Strict      bool
	Batching    string // threshold, gate:K, timer:D
	MaxBatch    int
	TokenBudget int
	KVTokens    int // 0: follows from the deployment

	GPUs             int // 0: as many as needed
	SmallTP, LargeTP int // 0: the smallest tabled one that fits
	Shared           bool
	MemoryShare      float64
	MemoryBytes      int     // 0: MemoryShare of what is available
	Contention       float64 // < 0: follows from the latency and the deployment
	Host             []float64
	TransportUS      float64
	RouterUS         float64

	RPC RPC

	Price Price

	SLO         string
	Percentiles []float64

	Out    string
	Output string
	Plot   []string
	Trace  bool
	Steps  bool // write a step log of each point
}

// RPC are the costs of the baseline; nil fields follow from the preset of each rpc system.
type RPC struct {
	Calls                                      dispatch.Calls
	RTTUS                                      *float64
	DispatchUS, DispatchUSPerToken             *float64
	ServerUS, ServerUSPerGen, ServerUSPerToken *float64
	ServerNSPerGen2, ServerNSPerToken2         *float64
	ExtendUS                                   []float64
}

// Defaults is the headline run: what `trbench run` does with no flag.
func Defaults() *Config {
	c := &Config{}
	for _, k := range Keys() {
		if err := k.set(c, k.Default); err != nil {
			panic("default of " + k.Name + ": " + err.Error())
		}
	}
	return c
}

func micros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }
