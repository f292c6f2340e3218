package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// UnmarshalJSON reads {"mean": 1, "p50": 1, ...} in any order of keys. A null percentile is left out.
func (d *Dist) UnmarshalJSON(data []byte) error {
	var values map[string]Float
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*d = Dist{Mean: values["mean"].Or(0)}
	for key, v := range values {
		if key == "mean" {
			continue
		}
		p, err := percentileOf(key)
		if err != nil {
			return err
		}
		if x, ok := v.Get(); ok {
			d.Quantiles = append(d.Quantiles, Quantile{p, x})
		}
	}
	sort.Slice(d.Quantiles, func(i, j int) bool { return d.Quantiles[i].P < d.Quantiles[j].P })
	return nil
}

// percentileOf reads a percentile's key. Only the spelling that Key writes is taken, so that no two keys are one.
func percentileOf(key string) (float64, error) {
	if number, ok := strings.CutPrefix(key, "p"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if err == nil && p > 0 && p <= 100 && (Quantile{P: p}).Key() == key {
			return p, nil
		}
	}
	return 0, fmt.Errorf("key %q in a distribution: want mean or a percentile such as p99.9", key)
}

// MarshalJSON writes an object in the order of the sweep; no axes are null.
func (a Axes) MarshalJSON() ([]byte, error) { return appendAxes(nil, a), nil }

// UnmarshalJSON reads an object of strings and keeps its order.
func (a *Axes) UnmarshalJSON(data []byte) error {
	*a = nil
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	tokens := json.NewDecoder(bytes.NewReader(data))
	if t, err := tokens.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return fmt.Errorf("axes: found %s, want an object of strings", data)
	}
	for tokens.More() {
		key, err := tokens.Token()
		if err != nil {
			return err
		}
		var axis Axis
		axis.Key = key.(string) // a key is a string, or More's next Token fails
		if err := tokens.Decode(&axis.Value); err != nil {
			return fmt.Errorf("axes: key %q: want a string: %w", axis.Key, err)
		}
		*a = append(*a, axis)
	}
	return nil
}
