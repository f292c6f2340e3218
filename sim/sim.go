// Package sim runs the scheduler core on a virtual clock: the same Subservers as the engine, fed by latency models and
// random draws instead of a GPU. One Run is one working point: one system, one workload, one concurrency.
//
// Read sim.go (what a run is), world.go (the event loop), client.go (arrivals and records), then rpc.go (the baseline).
package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// Topology is how the models of a deployment work together.
type Topology uint8

const (
	// TokenRouter runs one subserver a model, each at its own pace, with handoff-resume.
	TokenRouter Topology = iota
	// StepSync runs the models in turn, with a barrier after each step: what a loop over the models does.
	StepSync
	// RPC runs one single-model server a model, and an orchestrator that calls them.
	RPC
	// Single runs one model alone.
	Single
)

// Request is one entry of the list that every system runs.
type Request struct {
	Prompt, Output int32 // tokens, both >= 1
}

// Model is one model of the deployment as the simulator sees it.
type Model struct {
	Name    string
	Latency latency.Model // fresh for this run: models may keep state
	Policy  core.Policy
	// KVTokens is the pool's size in tokens; 0 is unlimited.
	KVTokens int
}

// Config is one run.
type Config struct {
	Topology Topology
	Models   []Model
	Router   route.Router  // nil: no routing; runs may share it, each takes a fresh one
	Signal   signal.Source // what the router sees; nil where it sees nothing; of this run alone, it may keep state
	Requests []Request
	Warmup   int // the first Warmup requests are not measured
	// Arrivals are the scheduled arrivals of an open loop, ascending, one a request. nil is a closed loop.
	Arrivals []clock.Instant
	// Clients is the number of workers of a closed loop, each issuing the next request when its last one ends.
	Clients int

	Contention float64       // kappa: both models of a pair run 1+kappa slower while both are busy on the same GPUs
	Transport  time.Duration // one way, of a message between subservers; 0 in one process
	RouterCost time.Duration // added to each step that routes
	// Wake, if not nil, is how long it takes from when model m's subserver, which sleeps because it has nothing to run, is
	// given work until it decides; what comes in between may join the step. beside says that another one has work meanwhile.
	// On the wall clock a decode loop sleeps and is woken. nil is loops that never sleep, as those of StepSync. Calls come
	// in the order of the simulated time.
	Wake func(m step.ModelID, beside bool) time.Duration
	RPC  RPCCosts // topology RPC only

	Collect metrics.Config
	// Ended is called once for each request as it ends; it must not keep the pointer. May be nil.
	Ended func(*results.Request)
	// Stepped is called for each completed step. The batch must not be kept. May be nil.
	Stepped func(b *step.Batch, start, end clock.Instant)
	// Log, if not nil, takes the event log.
	Log *core.EventLog
	// Check verifies every invariant of the core after every event: for tests.
	Check bool
}

// RPCCosts prices the orchestration of single-model servers. All of them are zero unless set.
type RPCCosts struct {
	Calls dispatch.Calls
	RTT   time.Duration // of one call, half of it each way
	// Dispatch is the orchestrator's CPU time a call, one call at a time: a fixed part and one for each token sent.
	Dispatch, DispatchPerToken time.Duration
	// Server is a server's CPU time a call, one call at a time and before the step: a fixed part, one for each token
	// generated so far, and one for each token of the prompt sent; Squared adds parts that grow faster.
	Server, ServerPerGenerated, ServerPerToken time.Duration
	Squared                                    SquaredCosts
	// Extend is added to a step that processes more than one token of some request, by model: such steps run without a
	// CUDA graph in some servers. nil is none.
	Extend []time.Duration
	// Cache is what a server keeps of a call's KV for the next call.
	Cache core.Retain
}

// ModelStats is what one model did in a run.
type ModelStats struct {
	core.Stats
	Busy time.Duration // time in a step
}

// Outcome is what a run gives.
type Outcome struct {
	*metrics.Collector
	Models []ModelStats
	Events int64         // of the simulation
	Tokens int64         // sampled, dropped drafts included
	End    clock.Instant // of the last event
	// Quality is counted where the signal knows when the models agree: a recorded trace.
	Quality Quality
	// Ended counts the requests that reached an end; fewer than asked for only if the run was interrupted.
	Ended int
}

// Quality is how often the output is what the large model would have written.
type Quality struct {
	Judged int64 // committed tokens of measured requests
	Agreed int64 // of which the large model wrote, or which are its likeliest token as well as the small model's
}

// Agreement is the share of tokens that agree; false where nobody judged.
func (q Quality) Agreement() (float64, bool) {
	if q.Judged == 0 {
		return 0, false
	}
	return float64(q.Agreed) / float64(q.Judged), true
}

// ErrStranded is the kind of a run in which every request waits for more requests to come: a threshold that the number
// of active requests can't reach.
var ErrStranded = errors.New("stranded")

// Run simulates one point. If ctx ends first, it returns what is done so far together with ctx's error.
func Run(ctx context.Context, c *Config) (*Outcome, error) {
	if err := c.valid(); err != nil {
		return nil, err
	}
	w := newWorld(c)
	defer w.let()
	if err := w.run(ctx); err != nil {
		return w.outcome(), err
	}
	return w.outcome(), nil
}

func (c *Config) valid() error {
	switch {
	case len(c.Models) == 0 || len(c.Models) > step.MaxModels:
		return fmt.Errorf("sim: %d models, want 1 to %d", len(c.Models), step.MaxModels)
	case c.Topology == Single && len(c.Models) != 1:
		return fmt.Errorf("sim: a single-model system with %d models", len(c.Models))
	case c.Arrivals == nil && c.Clients < 1:
		return fmt.Errorf("sim: a closed loop with %d workers, want at least 1", c.Clients)
	case c.Arrivals != nil && len(c.Arrivals) != len(c.Requests):
		return fmt.Errorf("sim: %d arrivals for %d requests", len(c.Arrivals), len(c.Requests))
	case len(c.Requests) == 0:
		return errors.New("sim: no requests")
	case c.Warmup < 0 || c.Warmup >= len(c.Requests):
		return fmt.Errorf("sim: %d warm-up requests of %d", c.Warmup, len(c.Requests))
	}
	if want, _ := route.Reads(c.Router); want != 0 {
		if _, ok := c.Signal.(signal.Reporter); !ok {
			return errors.New("sim: the router reads scores that the signal doesn't report")
		}
	}
	for i, r := range c.Requests {
		if r.Prompt < 1 || r.Output < 1 {
			return fmt.Errorf("sim: request %d: prompt %d, output %d tokens: want at least 1 each", i, r.Prompt, r.Output)
		}
	}
	for i := 1; i < len(c.Arrivals); i++ {
		if c.Arrivals[i] < c.Arrivals[i-1] {
			return fmt.Errorf("sim: arrival %d at %v comes before the one at %v", i, c.Arrivals[i], c.Arrivals[i-1])
		}
	}
	return nil
}
