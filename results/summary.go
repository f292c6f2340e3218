package results

// SummarySchema names the version of summary.json that this package writes, and the only one that it reads.
const SummarySchema = "trbench.summary/1"

// TokenRouter is the resolved name of the system that comparisons start from.
const TokenRouter = "tokenrouter"

// Summary is summary.json: a run's figures, one point a system and working point. Floats are unrounded and what is
// missing is null. WriteSummary gives the same bytes for the same value on every platform.
type Summary struct {
	Run         string       `json:"run"`   // hash of the config, less folder and workers
	Clock       string       `json:"clock"` // "virtual" (simulated) or "wall" (measured)
	Seed        uint64       `json:"seed"`
	Points      []Point      `json:"points"`
	Comparisons []Comparison `json:"comparisons"`
	Claims      []Claim      `json:"claims"`
	Warnings    []string     `json:"warnings"` // doubts about the figures, in plain words
}

// Point is one system at one working point. Zero values of Concurrency, of strings and of slices are null in JSON.
type Point struct {
	System      string `json:"system"` // resolved name: tokenrouter, rpc:vllm-apc, large-only, ...
	Algorithm   string `json:"algorithm"`
	Workload    string `json:"workload"`
	Pair        string `json:"pair"`
	Concurrency int    `json:"concurrency"` // workers of the closed loop; 0 in an open loop
	Threshold   []int  `json:"threshold"`   // batching threshold by model, at the configured N

	Requests     int     `json:"requests"`      // measured requests of any status: warm-up is not in it
	Failed       int     `json:"failed"`        // of which failed or were rejected
	OutputTokens int64   `json:"output_tokens"` // committed by the finished requests
	DurationS    Float   `json:"duration_s"`    // first scheduled arrival to last completion
	OutputTokS   Float   `json:"output_tok_s"`  // OutputTokens / DurationS
	SteadyTokS   Float   `json:"steady_tok_s"`  // the same over the time in which all workers are busy
	GoodputReqS  Float   `json:"goodput_req_s"` // requests per second that meet every SLO; null without an SLO
	LargeShare   Float   `json:"large_fraction"`
	Hops         Float   `json:"hops_per_request"`
	TTFT         *Dist   `json:"ttft_ms"` // from the scheduled arrival
	TPOT         *Dist   `json:"tpot_ms"`
	ITL          *Dist   `json:"itl_ms"`
	E2E          *Dist   `json:"e2e_ms"`
	BatchMean    []Float `json:"batch_mean"` // requests a step, by model
	Busy         []Float `json:"busy"`       // share of the run, warm-up included, in a step, by model
	Switch       *Switch `json:"switch_us"`
	CostPerMTok  Float   `json:"cost_usd_per_mtok"`

	// What follows explains or refines the fields above; a reader that knows only those loses nothing.

	Source        string `json:"source"`         // "simulated" or "measured"
	Arrival       string `json:"arrival"`        // "closed", "poisson:8", ...
	Batching      string `json:"batching"`       // "threshold", "gate:4", "timer:5ms"; null for a baseline
	Latency       string `json:"latency"`        // where step times come from: "a100", "const:6ms,27.9ms", ...
	Axes          Axes   `json:"axes"`           // swept keys other than those above, in the order of the sweep
	Cancelled     int    `json:"cancelled"`      // measured requests whose client let go
	Preempted     int64  `json:"preempted"`      // running requests that lost their KV and were recomputed
	KVDropped     int64  `json:"kv_dropped"`     // pending requests whose KV was dropped and recomputed
	SLOAttainment Float  `json:"slo_attainment"` // share of measured requests, cancelled ones aside, that meet every SLO
	RequestRate   Float  `json:"finished_req_s"` // finished requests per second of DurationS
	ICL           *Dist  `json:"icl_ms"`         // gap between chunks: the steps that committed something
	TTFTFromSend  *Dist  `json:"ttft_from_send_ms"`
	Agreement     Float  `json:"agreement"`          // share of tokens that the large model would have written too; null where nobody knows
	NLL           Float  `json:"nll_nats_per_token"` // mean of -ln p of the reference's token under the model that wrote its position; null without one
	Repeats       int    `json:"repeats"`            // runs that this point is the mean of; 0 or 1: one
	OutputCI95    Float  `json:"output_tok_s_ci95"`  // half-width of the 95 % interval over repeats
	Note          string `json:"percentile_note"`    // doubt about this point's percentiles
}

// Dist is a distribution's mean and percentiles, in the unit of the key that holds it. A nil Dist is null: no value.
type Dist struct {
	Mean      float64
	Quantiles []Quantile // ascending P; metrics always gives 50, 90 and 99
}

// Quantile is the value below which P percent of a distribution lies.
type Quantile struct {
	P     float64 // (0, 100]; its key is "p" and the shortest decimal: p50, p99.9
	Value float64
}

// Percentile returns the percentile p of d; nothing where it was not asked for or d is nil.
func (d *Dist) Percentile(p float64) Float {
	if d == nil {
		return Float{}
	}
	for _, q := range d.Quantiles {
		if q.P == p {
			return F(q.Value)
		}
	}
	return Float{}
}

// MeanValue returns the mean; nothing where d is nil.
func (d *Dist) MeanValue() Float {
	if d == nil {
		return Float{}
	}
	return F(d.Mean)
}

// Switch is what a change of model costs, in microseconds, in four parts that are always reported together. Only
// Enqueue, and Transport in process, can be microseconds.
type Switch struct {
	Enqueue   *Dist `json:"enqueue"`   // toggle to pending, append, enqueue at the peer
	Transport *Dist `json:"transport"` // on the wire
	Wait      *Dist `json:"wait"`      // available at the peer until its step starts
	Extend    *Dist `json:"extend"`    // that step, which processes the unseen suffix with whatever else is in its batch
}

// Axes are the swept keys of a point and their values, written as an object in this order.
type Axes []Axis

// Axis is one swept key and its value at a point.
type Axis struct{ Key, Value string }

// Comparison sets one point against another system's at the same working point.
type Comparison struct {
	Of              string `json:"of"`
	Against         string `json:"against"`
	Algorithm       string `json:"algorithm"`
	Workload        string `json:"workload"`
	Concurrency     int    `json:"concurrency"`
	ThroughputRatio Float  `json:"throughput_ratio"` // of / against
	TPOTP99Change   Float  `json:"tpot_p99_change"`  // fraction: -0.4 is 40 % less
	TTFTP99Change   Float  `json:"ttft_p99_change"`

	Pair    string `json:"pair"`
	Arrival string `json:"arrival"`
	Axes    Axes   `json:"axes"`
}

// Claim is a published number beside ours.
type Claim struct {
	Source     string `json:"source"` // "article" or "paper"
	ID         string `json:"id"`     // "ablation/n4/eager"
	Published  Float  `json:"published"`
	Ours       Float  `json:"ours"`
	Difference Float  `json:"difference"` // ours / published - 1
	Kind       string `json:"kind"`       // "fitted" (the number was used to set the model) or "predicted"
	Status     string `json:"status"`     // "reproduced", "direction" or "not"
	Why        string `json:"why"`
}
