// Package arrival says when requests arrive: a Spec is one arrival process, written as on the command line, and a
// Process gives its times one by one. It reads no clock and knows no workload: recorded arrivals are handed in.
//
// Read spec.go (what a process is, its name), then parse.go, then process.go (the times).
package arrival

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is a kind of arrival process.
type Kind string

const (
	Closed   Kind = "closed"   // each worker sends its next request when the last one ends: no times
	Poisson  Kind = "poisson"  // independent exponential gaps
	Gamma    Kind = "gamma"    // independent gamma gaps: cv above 1 is burstier than Poisson, below 1 more regular
	Constant Kind = "constant" // equal gaps
	Ramp     Kind = "ramp"     // a rate that moves evenly from one figure to another, then stays
	Trace    Kind = "trace"    // the recorded arrivals of the workload
)

// Kinds lists the kinds of process.
func Kinds() []Kind { return []Kind{Closed, Poisson, Gamma, Constant, Ramp, Trace} }

// Bounds of what a Spec may hold.
const (
	MaxRate  = 1e9  // requests per second: an Instant tells no shorter gap
	MaxCV    = 100  // beyond it, gaps are all but zero, with one giant among ten thousand
	MinCV    = 1e-6 // below it, gaps are equal to a nanosecond; constant says that better
	MaxScale = 1e9
)

// Spec is an arrival process. Parse makes one; a field that Kind doesn't name is zero.
type Spec struct {
	Kind Kind
	Rate float64       // requests per second: poisson, gamma, constant; > 0
	CV   float64       // gamma: coefficient of variation of the gaps; > 0. vLLM's "burstiness" is 1/CV^2
	From float64       // ramp: requests per second at the start; >= 0
	To   float64       // ramp: requests per second at the end of Over, and from then on; > 0
	Over time.Duration // ramp: how long the rate moves; > 0
	// Scale multiplies the rate of a replay: 2 halves every gap, so that the trace is over in half its time; > 0.
	Scale float64
}

// Closed says that there are no arrival times: the next request is sent when an earlier one ends.
func (s Spec) Closed() bool { return s.Kind == Closed }

// Replays says that the workload's recorded arrivals are needed.
func (s Spec) Replays() bool { return s.Kind == Trace }

// String is the canonical name: Parse(s.String()) gives s again.
func (s Spec) String() string {
	switch s.Kind {
	case Poisson, Constant:
		return string(s.Kind) + ":" + number(s.Rate)
	case Gamma:
		return "gamma:" + number(s.Rate) + ",cv=" + number(s.CV)
	case Ramp:
		return "ramp:" + number(s.From) + ".." + number(s.To) + "," + seconds(s.Over)
	case Trace:
		if s.Scale != 1 {
			return "trace:" + number(s.Scale)
		}
	}
	return string(s.Kind)
}

// MarshalText is String, so that a config or a result holds the name.
func (s Spec) MarshalText() ([]byte, error) {
	if err := s.valid(); err != nil {
		return nil, fmt.Errorf("arrival: %w", err)
	}
	return []byte(s.String()), nil
}

// UnmarshalText is Parse.
func (s *Spec) UnmarshalText(text []byte) error {
	v, err := Parse(string(text))
	if err == nil {
		*s = v
	}
	return err
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// seconds writes a span as seconds, exactly: 60s, 1.5s.
func seconds(d time.Duration) string {
	s := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + "s"
}

// valid says what is wrong with a Spec: the bounds of each field of its kind.
func (s Spec) valid() error {
	switch s.Kind {
	case Closed:
		return nil
	case Poisson, Constant:
		return rate("rate", s.Rate)
	case Gamma:
		if err := rate("rate", s.Rate); err != nil {
			return err
		}
		return within("cv", s.CV, MinCV, MaxCV)
	case Ramp:
		if s.From != 0 {
			if err := rate("start rate", s.From); err != nil {
				return err
			}
		}
		if err := rate("end rate", s.To); err != nil {
			return err
		}
		if s.Over <= 0 {
			return fmt.Errorf("found %v as the duration, wanted more than 0s", s.Over)
		}
		return nil
	case Trace:
		return within("scale", s.Scale, 1/MaxScale, MaxScale)
	}
	return fmt.Errorf("unknown kind %q", string(s.Kind))
}

func rate(what string, r float64) error {
	if !(r > 0 && r <= MaxRate) { // NaN is neither
		return fmt.Errorf("found %s as the %s, wanted more than 0 and at most %s requests per second", number(r), what,
			number(MaxRate))
	}
	return nil
}

func within(what string, v, least, most float64) error {
	if !(v >= least && v <= most) {
		return fmt.Errorf("found %s as the %s, wanted %s to %s", number(v), what, number(least), number(most))
	}
	return nil
}
