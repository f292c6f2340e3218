package markov

import (
	"errors"
	"fmt"
)

// The kinds of failure, for errors.Is. The types below carry the numbers, for errors.As.
var (
	// ErrModel: the model itself is malformed (a row of P that does not sum to 1, a step time that is not positive).
	ErrModel = errors.New("invalid model")
	// ErrInfeasible: the thresholds can strand every request; see InfeasibleError.
	ErrInfeasible = errors.New("infeasible threshold")
	// ErrTooLarge: the chain does not fit the memory limit, see TooLargeError, or the solver's numbers.
	ErrTooLarge = errors.New("chain too large")
	// ErrNotConverged: the iteration ended before its bounds met; see NotConvergedError.
	ErrNotConverged = errors.New("not converged")
	// ErrReducible: the chain has several closed classes, so its long-run throughput depends on chance.
	ErrReducible = errors.New("several closed classes")
	// ErrMethod: the method asked for does not apply to the model.
	ErrMethod = errors.New("method does not apply")
	// ErrTable: a threshold table is malformed; see TableError.
	ErrTable = errors.New("invalid threshold table")
)

// InfeasibleError reports thresholds under which every model can wait at once: B_i - 1 requests at each model i add up
// to all the requests there are.
type InfeasibleError struct {
	Threshold []int
	Requests  int // N
	Stranded  int // sum of (B_i - 1); feasible means < N
}

func (e *InfeasibleError) Error() string {
	return fmt.Sprintf("%v: %v for %d requests: sum of (B_i - 1) is %d, must be below %d",
		ErrInfeasible, e.Threshold, e.Requests, e.Stranded, e.Requests)
}

// Unwrap makes errors.Is(err, ErrInfeasible) hold.
func (e *InfeasibleError) Unwrap() error { return ErrInfeasible }

// TooLargeError reports a chain that was refused for its size.
type TooLargeError struct {
	States    float64 // states: an upper bound when Estimated, else how many had been found when the limit was reached
	Bytes     float64 // memory they need, at the average batch when Estimated
	Limit     int64   // Options.MaxBytes
	Estimated bool    // refused from the estimate, before a state was built
}

func (e *TooLargeError) Error() string {
	const mib = 1 << 20
	size := fmt.Sprintf("more than %.0f states take %.0f MiB", e.States, e.Bytes/mib)
	if e.Estimated {
		size = fmt.Sprintf("up to %.3g states, about %.3g MiB", e.States, e.Bytes/mib)
	}
	return fmt.Sprintf("%v: %s, limit %.0f MiB: use a coarser quantum or fewer requests, or simulate",
		ErrTooLarge, size, float64(e.Limit)/mib)
}

// Unwrap makes errors.Is(err, ErrTooLarge) hold.
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }

// NotConvergedError reports an iteration that was given up. The throughput is known to lie between Lower and Upper, in
// tokens per second; no point estimate is offered, since such chains sit for very long in parts of their state space.
type NotConvergedError struct {
	Sweeps       int
	Residual     float64 // L1 norm of one sweep's change of the stationary vector
	Lower, Upper float64 // proved bounds, tok/s
}

func (e *NotConvergedError) Error() string {
	return fmt.Sprintf("%v after %d sweeps: residual %.1e, throughput between %.6g and %.6g tok/s",
		ErrNotConverged, e.Sweeps, e.Residual, e.Lower, e.Upper)
}

// Unwrap makes errors.Is(err, ErrNotConverged) hold.
func (e *NotConvergedError) Unwrap() error { return ErrNotConverged }

// TableError reports where a threshold table is wrong.
type TableError struct {
	File   string
	Line   int    // 0 where the file as a whole is wrong
	Field  string // e.g. rows[3].threshold
	Found  string
	Wanted string
}

func (e *TableError) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Field != "" {
		place += ": " + e.Field
	}
	return fmt.Sprintf("%s: %v: found %s, wanted %s", place, ErrTable, e.Found, e.Wanted)
}

// Unwrap makes errors.Is(err, ErrTable) hold.
func (e *TableError) Unwrap() error { return ErrTable }
