package metrics

import (
	"fmt"
	"strings"
	"time"

	"github.com/trbench/trbench/results"
)

// SLO is what a request must keep to count as good: every limit that is not zero, each inclusive.
type SLO struct {
	TTFT time.Duration
	TPOT time.Duration
	ITL  time.Duration // for the longest gap of a request
	E2E  time.Duration
}

// sloKeys are the words of the flag, in the order in which they are printed.
var sloKeys = [...]string{"ttft", "tpot", "itl", "e2e"}

func (s *SLO) limit(key string) *time.Duration {
	switch key {
	case "ttft":
		return &s.TTFT
	case "tpot":
		return &s.TPOT
	case "itl":
		return &s.ITL
	case "e2e":
		return &s.E2E
	}
	return nil
}

// ParseSLO reads "ttft=500ms,tpot=30ms,itl=100ms,e2e=10s": any of them, each once, with its unit. The empty text is no
// SLO.
func ParseSLO(text string) (SLO, error) {
	var s SLO
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		limit := s.limit(key)
		if !ok || limit == nil {
			return SLO{}, fmt.Errorf("slo %q: %q: want KEY=TIME with KEY one of %s", text, field, strings.Join(sloKeys[:], ", "))
		}
		if *limit != 0 {
			return SLO{}, fmt.Errorf("slo %q: %s is there twice", text, key)
		}
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return SLO{}, fmt.Errorf("slo %q: %s: found %q, want a time above 0 with its unit, such as 500ms", text, key, value)
		}
		*limit = d
	}
	return s, nil
}

// String is what ParseSLO reads.
func (s SLO) String() string {
	var fields []string
	for _, key := range sloKeys {
		if d := *s.limit(key); d != 0 {
			fields = append(fields, key+"="+d.String())
		}
	}
	return strings.Join(fields, ",")
}

// IsZero says that there is no limit.
func (s SLO) IsZero() bool { return s == SLO{} }

// Met says that r finished within every limit. A request of one token has no TPOT and no gap, and keeps those limits;
// one without a token has no TTFT and no E2E, and breaks these.
func (s SLO) Met(r *results.Request) bool {
	if r.Status != results.Finished {
		return false
	}
	if s.TTFT != 0 {
		if d, ok := r.TTFT(); !ok || d > s.TTFT {
			return false
		}
	}
	if s.E2E != 0 {
		if d, ok := r.E2E(); !ok || d > s.E2E {
			return false
		}
	}
	if s.TPOT != 0 {
		if ms, ok := r.TPOT(); ok && ms > results.Millis(s.TPOT) {
			return false
		}
	}
	return s.ITL == 0 || r.MaxITL <= s.ITL
}
