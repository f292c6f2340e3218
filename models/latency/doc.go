// Package latency says how long a step takes. A Model prices a step from its shape alone: Constant and Affine are
// formulas, Table interpolates measured step times, WithHost and Modulation add to any of them. Parse turns what a user
// asked for ("a100", "paper", "const:6ms,28ms", a file) into one model for each subserver, with a label that says
// whether a number was measured, fitted, published or assumed.
//
// It measures nothing, sleeps never and reads no clock. Profiles and Modulations are immutable and shared; a Model made
// from one is an instance for one goroutine.
//
// Read model.go (the interface), then affine.go and table.go (the two laws), spec.go (what a run can ask for), and
// contention.go (how steps of models on the same GPUs slow each other).
//
// # Where the embedded tables come from
//
// profiles/ holds step times for A100, H100 and H200 in bf16, composed from the measured vLLM kernel tables of
// ai-dynamo/aiconfigurator (Apache-2.0; profiles/README.md has the details). They are kernel time only: the host's
// overhead a step is a separate, visible term (see WithHost).
package latency
