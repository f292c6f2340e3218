// Package experiment turns a configuration into results: it lays the keys of a run over each other (defaults, file,
// environment, flags), expands them into working points, runs the points on all cores and writes the result folder.
// Commands are thin around it.
//
// Read config.go (what can be set), keys.go (every key with its help), layers.go (who sets it), plan.go (from a config
// to points), point.go (one point in the simulator), live.go (one on the engine), then run.go.
package experiment

import (
	"errors"
	"fmt"
)

// Exit codes, as scripts and CI read them.
const (
	ExitOK          = 0
	ExitInternal    = 1
	ExitUsage       = 2   // usage or config: unknown name, infeasible threshold, deployment that does not fit, unwritable folder
	ExitData        = 3   // dataset: missing, unreadable, malformed
	ExitTarget      = 4   // target or device not there
	ExitNoTokens    = 5   // zero tokens, or more requests failed than allowed
	ExitRegression  = 99  // threshold or regression
	ExitInterrupted = 130 // what is done is written
)

// Error is an error with the exit code that it means.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// usage marks err as the user's: exit 2.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &Error{ExitUsage, err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// Code is the exit code of err.
func Code(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ExitInternal
}
