// Package markov computes the throughput of token-level routing exactly, and the batching thresholds that maximise
// it. Its model is the discrete-time Markov chain of the paper's appendix D: N requests circulate for ever among M
// models; model i starts a step when at least B_i requests wait for it, takes them all, and sends each on by row i of
// P when the step ends. It simulates nothing, draws no random number and reads no clock.
//
// Solve prices one threshold vector, Best finds the best one for a given N, BuildTable does so for N = 1..Nmax and
// Table keeps the result as a file that the scheduler loads.
//
// Read model.go (what is asked), chain.go (the state space), embedded.go (how it is solved, and how the answer is
// bracketed), then solve.go (which method when). twomodel.go is the fast solver for two models. closed.go has the
// closed forms that the chain must agree with, and meanfield.go the deterministic limit of large N.
//
// A figure is returned only with a proof of its accuracy: the iteration stops when a lower and an upper bound on the
// throughput, valid whatever it has come to, have met. Slow mixing therefore shows as an error (ErrNotConverged), or
// calls for elimination instead, but never gives a wrong number.
package markov
