// Package calibrate fits what the simulator needs to logs of a real system, and says how far to trust it: each number
// has a 95 % interval, each law its error, and each assumption that the log contradicts a warning.
//
//	step log    one line a step: a latency law for each model (Affine or a table) and the Markov chain that modulates it
//	token log   one line a token: who wrote it. The writers' transition matrix, how bursty it is, how it varies over
//	            the output, and what a drafting model's tokens are worth to the other one
//	benchmark   the result of `vllm bench serve`: what was measured, in the metrics of this program, beside a prediction
//
// It draws nothing at random and reads no clock: the same log gives the same bytes.
//
// Read log.go (what is read; rows.go how), then steps.go (a step log from end to end): affine.go and table.go are the
// laws, chain.go the hidden Markov chain, joint.go how both are fitted together and information.go their intervals.
// tokens.go and runs.go are for token logs, bench.go and compare.go for benchmarks. report.go is what comes out.
package calibrate
