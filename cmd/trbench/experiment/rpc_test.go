package experiment

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

// The radix preset charges what the paper's breakdown sums up to where it was taken, half of it linear, half quadratic.
func TestRadixPreset(t *testing.T) {
	s, err := FindSystem("rpc:sglang-radix")
	if err != nil {
		t.Fatal(err)
	}
	ms := func(prompt, generated int32) float64 {
		return float64(s.Costs.ServerTime(prompt, generated)) / float64(time.Millisecond)
	}
	const published = 7.78 + 6.49 + 5.13 + 12.12
	if got := ms(100+1984, 1984); math.Abs(got-published) > .01 {
		t.Errorf("%.3f ms at 1,984 generated tokens, want %.2f", got, published)
	}
	if got, want := ms(8192+3968, 3968), published/2*2+published/2*4; math.Abs(got-want) > .03 {
		t.Errorf("%.3f ms at twice as many, want %.2f whatever the prompt", got, want)
	}
	if got := ms(8192, 0); got != 0 {
		t.Errorf("%g ms for the first call, want 0", got)
	}
}

// A cost that is set holds for every rpc system, and is named as given; the others keep their preset and its source.
func TestCostSources(t *testing.T) {
	c := Defaults()
	for key, value := range map[string]string{
		"system": "tokenrouter,rpc:vllm-apc,rpc:sglang-radix", "rpc.server_us": "5", "rpc.extend_us": "1,2",
		"rpc.server_ns_per_generated_squared": "0", "requests": "4",
	} {
		if err := c.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewPlan(context.Background(), "t", c)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := p.CostSources()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"rpc:vllm-apc: rpc.server_us = 5 (as given)", "rpc:sglang-radix: rpc.server_us = 5 (as given)",
		"rpc:sglang-radix: rpc.extend_us = 1,2 (as given)", "rpc:vllm-apc: rpc.server_us_per_generated = 0 (no source charges it)",
		"rpc:sglang-radix: rpc.server_us_per_generated = 7.943 (published",
		"rpc:sglang-radix: rpc.server_ns_per_generated_squared = 0 (as given)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "tokenrouter:") {
		t.Error("tokenrouter makes no calls")
	}
}
