package calibrate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxTokens bounds a count of tokens in a log: more is a mistake, and twice the product of two still fits an int64.
const maxTokens = 1 << 30

// whole reads a whole number within bounds.
func (r *rows) whole(c cell, lo, hi int64) (int64, error) {
	wanted := fmt.Sprintf("a whole number from %d to %d", lo, hi)
	if c.form != plain && c.form != jsonNumber {
		return 0, r.fault(c.name, "found %v, wanted %s", c, wanted)
	}
	n, err := strconv.ParseInt(c.text, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, r.fault(c.name, "found %s, wanted %s", quoted(c.text), wanted)
	}
	return n, nil
}

// real reads a finite number within bounds.
func (r *rows) real(c cell, lo, hi float64) (float64, error) {
	if c.form != plain && c.form != jsonNumber {
		return 0, r.fault(c.name, "found %v, wanted a number from %g to %g", c, lo, hi)
	}
	x, err := strconv.ParseFloat(c.text, 64)
	if err != nil || !(x >= lo && x <= hi) { // a NaN too
		return 0, r.fault(c.name, "found %s, wanted a number from %g to %g", quoted(c.text), lo, hi)
	}
	return x, nil
}

// label reads a name: a string, or a number as it stands.
func (r *rows) label(c cell) (string, error) {
	name := strings.TrimSpace(c.text)
	if c.form == jsonOther || c.form == absent || name == "" {
		return "", r.fault(c.name, "found %v, wanted a name", c)
	}
	return name, nil
}

// units are the endings of a column of times, with the decimal places from it down to nanoseconds.
var units = []struct {
	suffix string
	places int
}{{"_ns", 0}, {"_us", 3}, {"_ms", 6}, {"_s", 9}}

// timed are the names of a column of times in any unit.
func timed(name string) []string {
	var names []string
	for _, u := range units {
		names = append(names, name+u.suffix)
	}
	return names
}

// nanoseconds reads a time in the unit that the column's name ends in. resolution is what its last digit is worth, ns.
func (r *rows) nanoseconds(c cell, least int64) (ns, resolution int64, err error) {
	const most = int64(math.MaxInt64) / 4 // sums of two still fit
	places := 0
	for _, u := range units {
		if strings.HasSuffix(plainName(c.name), u.suffix) {
			places = u.places
			break
		}
	}
	if c.form != plain && c.form != jsonNumber {
		return 0, 0, r.fault(c.name, "found %v, wanted a number", c)
	}
	ns, resolution, ok := decimal(c.text, places)
	if !ok || ns < -most || ns > most {
		return 0, 0, r.fault(c.name, "found %s, wanted a number of at most 73 years", quoted(c.text))
	}
	if ns < least {
		return 0, 0, r.fault(c.name, "found %s, wanted more than 0", quoted(c.text))
	}
	return ns, resolution, nil
}

// decimal reads a number as a whole number of 10^-places, exactly: a double holds an epoch's seconds to 0.2 us only.
// Digits beyond are rounded off. resolution is what the last digit given is worth, at least 1.
func decimal(s string, places int) (value, resolution int64, ok bool) {
	if strings.ContainsAny(s, "eE") {
		x, err := strconv.ParseFloat(s, 64)
		x = math.Round(x * math.Pow10(places))
		if err != nil || !(math.Abs(x) < 1<<62) {
			return 0, 0, false
		}
		return int64(x), 1, true
	}
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits, _ = strings.CutPrefix(s, "+")
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole+fraction == "" {
		return 0, 0, false
	}
	resolution = pow10(max(0, places-len(fraction)))
	roundUp := false
	if len(fraction) > places {
		for _, d := range []byte(fraction[places:]) {
			if d < '0' || d > '9' {
				return 0, 0, false
			}
		}
		roundUp = fraction[places] >= '5'
		fraction = fraction[:places]
	}
	fraction += strings.Repeat("0", places-len(fraction))
	for _, d := range []byte(whole + fraction) {
		if d < '0' || d > '9' || value > (math.MaxInt64-10)/10 {
			return 0, 0, false
		}
		value = value*10 + int64(d-'0')
	}
	if roundUp {
		value++
	}
	if negative {
		value = -value
	}
	return value, resolution, true
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
