package table

import (
	"math"
	"strconv"
	"strings"

	"github.com/trbench/trbench/results"
)

// none stands where there is no value.
const none = "-"

// number writes a figure with about four digits and thousands separated: 12,345, 123.4, 6.02, 0.0012.
func number(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return none
	}
	switch abs := math.Abs(x); {
	case abs >= 999.95:
		return grouped(x)
	case abs >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case abs >= 0.00995 || abs == 0:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// usd writes a price of a million tokens in three digits; only one above $1,000 has more.
func usd(f results.Float) string {
	if x, ok := f.Get(); ok && x >= 99.95 {
		return grouped(x)
	}
	return number(f)
}

// hundredths writes a figure that stands beside a published one, with the two decimals of those: 161.26.
func hundredths(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return none
	}
	if math.Abs(x) >= 99999.5 {
		return grouped(x)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// grouped writes a whole number with a comma before every three digits.
func grouped(x float64) string {
	digits := strconv.FormatFloat(math.Abs(x), 'f', 0, 64)
	var b strings.Builder
	if x < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// times writes a ratio: 2.10x, 64.2x.
func times(f results.Float) string {
	if f.IsNull() {
		return none
	}
	return number(f) + "x"
}

// percent writes a fraction as a signed change: +3.1 %, -43.6 %. From a hundredfold on it writes the multiple, 120x.
func percent(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return none
	}
	s := strconv.FormatFloat(100*x, 'f', 1, 64)
	switch {
	case x >= 100:
		return times(results.F(x + 1))
	case math.Abs(x) >= 9.9995:
		s = grouped(100 * x)
	}
	if !strings.HasPrefix(s, "-") || s == "-0.0" {
		s = "+" + strings.TrimPrefix(s, "-")
	}
	return s + " %"
}

// share writes a fraction as a part of the whole: 21.0 %.
func share(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return none
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + " %"
}

// nats writes a mean negative log-likelihood, whose differences are small.
func nats(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return none
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

// concurrency writes the workers of a closed loop.
func concurrency(n int) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}
