package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Axis is one swept key with its values, as text that the key takes.
type Axis struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// maxAxis bounds the values of one axis.
const maxAxis = 10000

// ParseAxis reads KEY=1,2,4 or KEY=1..16 or KEY=0.05..0.5:0.05. An error says at which column it stands.
func ParseAxis(text string) (Axis, error) {
	key, list, ok := strings.Cut(text, "=")
	if !ok {
		return Axis{}, axisError(text, len(text), "want KEY=VALUES, as in threshold=1..16")
	}
	k, err := FindKey(strings.TrimSpace(key))
	if err != nil {
		return Axis{}, axisError(text, 0, "%v", err)
	}
	if k.Free || k.Name == "repeat" {
		return Axis{}, axisError(text, 0, "%s can't be swept: it does not change what a point is", k.Name)
	}
	a := Axis{Key: k.Name}
	at := len(key) + 1
	if strings.TrimSpace(list) == "" {
		return Axis{}, axisError(text, at, "want at least one value")
	}
	for _, part := range splitValues(list) {
		values, err := axisValues(part)
		if err != nil {
			return Axis{}, axisError(text, at, "%v", err)
		}
		for _, v := range values {
			if err := Defaults().Set(k.Name, v); err != nil {
				return Axis{}, axisError(text, at, "%v", err)
			}
		}
		a.Values = append(a.Values, values...)
		if len(a.Values) > maxAxis {
			return Axis{}, axisError(text, at, "more than %d values", maxAxis)
		}
		at += len(part) + 1
	}
	seen := map[string]bool{}
	for _, v := range a.Values {
		if seen[v] {
			return Axis{}, axisError(text, len(key)+1, "value %s stands there twice", v)
		}
		seen[v] = true
	}
	return a, nil
}

// splitValues splits at commas; the one of fixed:PROMPT,OUTPUT belongs to the value.
func splitValues(list string) []string {
	var parts []string
	for part := range strings.SplitSeq(list, ",") {
		if n := len(parts); n > 0 && strings.HasPrefix(strings.TrimSpace(parts[n-1]), "fixed:") && !strings.Contains(parts[n-1], ",") {
			parts[n-1] += "," + part
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// axisValues is one value, or the values of a range FROM..TO[:STEP]. A step that is no whole number counts in units of
// its last digit, so that 0.05..0.5:0.05 ends at 0.5 and holds no 0.15000000000000002.
func axisValues(part string) ([]string, error) {
	part = strings.TrimSpace(part)
	from, rest, isRange := strings.Cut(part, "..")
	if !isRange {
		if part == "" {
			return nil, fmt.Errorf("a value is empty")
		}
		return []string{part}, nil
	}
	to, step, hasStep := strings.Cut(rest, ":")
	if !hasStep {
		step = "1"
	}
	digits := 0
	var x [3]float64
	for i, s := range []string{from, to, step} {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("range %q: %q is no number: want FROM..TO or FROM..TO:STEP", part, s)
		}
		x[i] = v
		if _, frac, ok := strings.Cut(strings.TrimSpace(s), "."); ok {
			digits = max(digits, len(frac))
		}
	}
	if x[2] <= 0 || x[1] < x[0] {
		return nil, fmt.Errorf("range %q: want FROM <= TO and a step above 0", part)
	}
	n := math.Floor((x[1]-x[0])/x[2]+1e-9) + 1
	if n > maxAxis {
		return nil, fmt.Errorf("range %q: more than %d values", part, maxAxis)
	}
	values := make([]string, int(n))
	for i := range values {
		s := strconv.FormatFloat(x[0]+float64(i)*x[2], 'f', digits, 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		values[i] = s
	}
	return values, nil
}

func axisError(text string, column int, format string, args ...any) error {
	return usagef("axis %q, column %d: "+format, append([]any{text, column + 1}, args...)...)
}
