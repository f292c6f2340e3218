package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxTokens bounds one prompt and one output: 2^24 tokens, above any context window, and small enough that the sum of
// two fits a position in a sequence (int32) with room to spare. A larger figure is a wrong column or a broken file.
const MaxTokens = 1 << 24

// MaxArrival bounds an arrival, from the start of its trace: ten years.
const MaxArrival = 10 * 365 * 24 * time.Hour

// count reads a number of tokens. A float that is whole (some tools write 472.0) is taken; msg says what else was
// found.
func count(s string) (n int, msg string) {
	s = strings.TrimSpace(s)
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ok := decimal(s)
		if !ok || f != math.Trunc(f) {
			return 0, fmt.Sprintf("found %s, wanted a whole number from 0 to %d", shown(s), MaxTokens)
		}
		v = int64(min(max(f, -1), MaxTokens+1))
	}
	if v < 0 || v > MaxTokens {
		return 0, fmt.Sprintf("found %s, wanted a whole number from 0 to %d", shown(s), MaxTokens)
	}
	return int(v), ""
}

// span reads a time since the start of a trace, in the given unit; it is rounded to a nanosecond.
func span(s string, unit time.Duration) (d time.Duration, msg string) {
	s = strings.TrimSpace(s)
	f, ok := decimal(s)
	if !ok || f < 0 || f > float64(MaxArrival/unit) {
		return 0, fmt.Sprintf("found %s, wanted a number of %s from 0 to %d (ten years)", shown(s), unitName(unit),
			int64(MaxArrival/unit))
	}
	return time.Duration(math.Round(f * float64(unit))), ""
}

func unitName(unit time.Duration) string {
	switch unit {
	case time.Second:
		return "seconds"
	case time.Millisecond:
		return "milliseconds"
	default:
		return "nanoseconds"
	}
}

// decimal reads a finite decimal number: strconv's syntax less hexadecimal, underscores, infinity and NaN.
func decimal(s string) (float64, bool) {
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}
