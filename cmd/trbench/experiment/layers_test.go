package experiment

import (
	"strings"
	"testing"
)

// TestLayers: what is laid over later holds, and what nobody sets is the default.
func TestLayers(t *testing.T) {
	c := Defaults()
	file := "switch_rate: 0.2\nseed: 2\nrpc:\n  rtt_us: 5\n---\nmax_batch: 8\n"
	if err := c.LoadYAML("c.yaml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TRBENCH_SEED": "3", "TRBENCH_RPC_RTT_US": "6"}
	if err := c.LoadEnv(func(name string) (string, bool) { v, ok := env[name]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	if err := c.SetPair(" rpc.rtt_us = 7 "); err != nil {
		t.Fatal(err)
	}
	if c.SwitchRate != .2 || c.Seed != 3 || *c.RPC.RTTUS != 7 || c.MaxBatch != 8 || c.TokenBudget != 8192 {
		t.Errorf("got switch_rate %g, seed %d, rpc.rtt_us %g, max_batch %d, token_budget %d; want 0.2, 3, 7, 8, 8192",
			c.SwitchRate, c.Seed, *c.RPC.RTTUS, c.MaxBatch, c.TokenBudget)
	}
}

// TestYAMLValues: a list is the text with commas between, and numbers are what they look like.
func TestYAMLValues(t *testing.T) {
	for _, c := range []struct{ yaml, key, want string }{
		{"concurrency: [1, 2]", "concurrency", "1,2"},
		{"concurrency:\n- 4\n- 8\n", "concurrency", "4,8"},
		{"concurrency: 16", "concurrency", "16"},
		{"workload: [gsm8k, 'fixed:20,20']", "workload", "gsm8k,fixed:20,20"},
		{"deployment: {large_tp: 8, shared: false}", "deployment.large_tp", "8"},
		{"deployment.shared: false", "deployment.shared", "false"},
		{"slo: \"ttft=1s\"", "slo", "ttft=1s"},
		{"out: |-\n  a b", "out", "a b"},
		{"switch-rate: 0.5", "switch_rate", "0.5"},
		{"data: []", "data", ""},
	} {
		cfg := Defaults()
		if err := cfg.LoadYAML("c.yaml", []byte(c.yaml)); err != nil {
			t.Errorf("%q: %v", c.yaml, err)
			continue
		}
		k, err := FindKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Get(cfg); got != c.want {
			t.Errorf("%q: %s is %q, want %q", c.yaml, c.key, got, c.want)
		}
	}
}

// FuzzLoadYAML: any text either sets keys or is the user's mistake, with the file's name.
func FuzzLoadYAML(f *testing.F) {
	for _, s := range []string{
		"", "#", "seed: 1", "seed:\n", "seed: [1", "- 1", "a", "rpc:\n  calls: run\n", "rpc: {rtt_us: 1, calls: token}",
		"---\n---\n", "&a seed: *a", "seed: !!int 1", "? seed\n: 1", "seed: |\n  1", "\xff", "<<: {seed: 1}", "1: 2",
		"concurrency: [[1], {a: 1}]", "~: 3", "seed: &x 3\nmax_batch: *x",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Defaults().LoadYAML("c.yaml", data)
		if err == nil {
			return
		}
		if Code(err) != ExitUsage || !strings.Contains(err.Error(), "c.yaml") {
			t.Errorf("error %q with exit code %d: want the file's name and %d", err, Code(err), ExitUsage)
		}
	})
}
