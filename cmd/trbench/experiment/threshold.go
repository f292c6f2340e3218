package experiment

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/workloads"
)

// thresholds reads the threshold key: nil is eager.
func (p *Plan) thresholds(ctx context.Context, algorithm string, set *workloads.Set) (core.Table, error) {
	text := strings.TrimSpace(p.Config.Threshold)
	m := len(p.Pair.Models)
	switch text {
	case "eager", "":
		return nil, nil
	}
	if k, err := strconv.Atoi(text); err == nil {
		if k < 1 {
			return nil, usagef("threshold %d: want at least 1", k)
		}
		return core.Table{core.Scalar(m, k)}, nil
	}
	if vector, err := parseVector(text); err == nil {
		if len(vector) != m {
			return nil, usagef("threshold %s: %d values for %d models: one for each, or one number for the large model", text, len(vector), m)
		}
		return core.Table{vector}, nil
	}
	return nil, usagef("threshold %q: want eager, a whole number for the large model, or one for each model as in 1,3", text)
}

func parseVector(text string) ([]int, error) {
	var v []int
	for _, part := range strings.Split(text, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || k < 1 {
			return nil, fmt.Errorf("%q: want whole numbers of at least 1", part)
		}
		v = append(v, k)
	}
	return v, nil
}
