package models

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func cards(t *testing.T, names ...string) []Card {
	t.Helper()
	var out []Card
	for _, n := range names {
		out = append(out, mustLookup(t, n))
	}
	return out
}

func gpu(t *testing.T, name string) GPU {
	t.Helper()
	g, err := LookupGPU(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Hand-computed: an A100 has 81920 MiB = 85,899,345,920 bytes, of which .9 is 77,309,411,328.
func TestKVTokens(t *testing.T) {
	for _, c := range []struct {
		name   string
		models []string
		d      Deployment
		want   int
	}{
		{"shared, 8B TP 1 and 70B TP 4", []string{"llama3-8b", "llama3-70b"},
			Deployment{GPUs: 4, TP: []int{1, 4}, Shared: true},
			// 77,309,411,328 - 16,060,522,496 - 35,276,853,248 over 131,072 + 81,920 bytes a token
			121_939},
		{"separate, 8B TP 1 and 70B TP 4: the 8B has less room", []string{"llama3-8b", "llama3-70b"},
			Deployment{GPUs: 5, TP: []int{1, 4}},
			467_291}, // (77,309,411,328 - 16,060,522,496) / 131,072; the 70B has room for 513,092
		{"one model", []string{"llama3-8b"}, Deployment{GPUs: 1, TP: []int{1}}, 467_291},
		{"half the memory", []string{"llama3-8b"}, Deployment{GPUs: 1, TP: []int{1}, MemoryShare: .5}, 205_147},
		{"KV heads fewer than ranks are copied", []string{"llama3-70b"}, Deployment{GPUs: 16, TP: []int{16}},
			// 141,107,412,992 / 16 bytes of weights; a whole head of 2 x 2 x 80 x 128 bytes on each rank
			1_672_123},
	} {
		c.d.GPU = gpu(t, "a100")
		got, err := c.d.KVTokens(cards(t, c.models...))
		if err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
	}
}

func TestDeploymentThatDoesNotFit(t *testing.T) {
	pair := cards(t, "llama3-8b", "llama3-70b")
	d := Deployment{GPU: gpu(t, "a100"), GPUs: 2, TP: []int{1, 2}, Shared: true, MemoryShare: .9}
	_, err := d.KVTokens(pair)
	want := "llama3-8b (TP 1) + llama3-70b (TP 2) need 16.06 + 70.55 = 86.61 GB on GPU 0 of a100, " +
		"77.31 GB usable (memory_share 0.9): use large_tp 4"
	var fit *FitError
	if !errors.As(err, &fit) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}

	d = Deployment{GPU: gpu(t, "a100"), GPUs: 2, TP: []int{1, 1}, MemoryShare: .9}
	_, err = d.KVTokens(pair)
	want = "llama3-70b (TP 1) needs 141.11 GB on GPU 1 of a100, 77.31 GB usable (memory_share 0.9): use large_tp 2"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}

	d = Deployment{GPU: gpu(t, "a100"), GPUs: 2, TP: []int{1, 1}, MemoryShare: .1}
	_, err = d.KVTokens(pair)
	want = "llama3-8b (TP 1) needs 16.06 GB on GPU 0 of a100, 8.59 GB usable (memory_share 0.1): use TP 2 for llama3-8b"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}

	d = Deployment{GPU: gpu(t, "a100"), GPUs: 64, TP: []int{1, 64}, Shared: true, MemoryShare: .1}
	if _, err = d.KVTokens(pair); err == nil || !strings.HasSuffix(err.Error(), ": use GPUs with more memory") {
		t.Error(err)
	}
}

func TestDeploymentThatMakesNoSense(t *testing.T) {
	pair := cards(t, "qwen2.5-7b", "qwen2.5-72b")
	for _, c := range []struct {
		d    Deployment
		want string
	}{
		{Deployment{GPUs: 2, TP: []int{1, 4}, Shared: true}, "shared a100 GPUs with TP 1, 4 need 4, 2 given"},
		{Deployment{GPUs: 4, TP: []int{1, 4}}, "separate a100 GPUs with TP 1, 4 need 5, 4 given"},
		{Deployment{GPUs: 4, TP: []int{4}}, "2 models and 1 TP values"},
		{Deployment{GPUs: 8, TP: []int{8, 8}, Shared: true}, "TP 8 does not divide the 28 attention heads of qwen2.5-7b"},
		{Deployment{GPUs: 8, TP: []int{0, 8}, Shared: true}, "TP 0 does not divide"},
		{Deployment{GPUs: 8, TP: []int{1, 8}, Shared: true, MemoryShare: 1.5}, "memory_share is 1.5"},
	} {
		c.d.GPU = gpu(t, "a100")
		if _, err := c.d.KVTokens(pair); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.d, err, c.want)
		}
	}
}

func TestDefaultDeployment(t *testing.T) {
	for _, c := range []struct {
		gpu     string
		models  []string
		allowed [][]int
		shared  bool
		tp      []int
		gpus    int
	}{
		{"a100", []string{"llama3-8b", "llama3-70b"}, [][]int{{1, 2}, {2, 4, 8}}, true, []int{1, 4}, 4},
		{"a100", []string{"llama3-8b", "llama3-70b"}, [][]int{{2, 1}, {8, 4, 2}}, true, []int{1, 4}, 4},
		{"a100", []string{"llama3-8b", "llama3-70b"}, [][]int{{1, 2}, {2, 4, 8}}, false, []int{1, 2}, 3},
		{"h200", []string{"llama3-8b", "llama3-70b"}, [][]int{{1, 2}, {2, 4, 8}}, true, []int{1, 2}, 2},
		{"h100", []string{"qwen2.5-7b", "qwen2.5-72b"}, [][]int{{1}, {2, 4, 8}}, true, []int{1, 4}, 4},
		{"a100", []string{"qwen3-0.6b", "qwen3-32b"}, [][]int{{1}, {1, 2, 4}}, true, []int{1, 1}, 1},
		{"a100", []string{"qwen3-0.6b", "qwen3-8b", "qwen3-32b"}, [][]int{{1}, {1}, {1, 2, 4}}, true, []int{1, 1, 2}, 2},
		{"a100", []string{"llama3-70b"}, [][]int{{2, 4, 8}}, true, []int{2}, 2},
		{"a100", []string{"llama3-8b"}, [][]int{{1, 2}}, true, []int{1}, 1},
	} {
		d, err := DefaultDeployment(gpu(t, c.gpu), cards(t, c.models...), c.allowed, c.shared, 0)
		if err != nil || !slices.Equal(d.TP, c.tp) || d.GPUs != c.gpus || d.MemoryShare != DefaultMemoryShare {
			t.Errorf("%s %v shared=%v: TP %v on %d GPUs, %v, want TP %v on %d",
				c.gpu, c.models, c.shared, d.TP, d.GPUs, err, c.tp, c.gpus)
		}
	}
}

func TestOnlyKeepsTheHardware(t *testing.T) {
	pair := cards(t, "llama3-8b", "llama3-70b")
	d := Deployment{GPU: gpu(t, "a100"), GPUs: 4, TP: []int{1, 4}, Shared: true, MemoryShare: .9}
	large := d.Only(1)
	if tokens, err := large.KVTokens(pair[1:]); err != nil || tokens != 513_092 || large.GPUs != 4 {
		t.Errorf("the 70B alone on TP 4: %d tokens on %d GPUs, %v", tokens, large.GPUs, err)
	}
}

func TestDefaultDeploymentErrors(t *testing.T) {
	pair := cards(t, "llama3-8b", "llama3-70b")
	_, err := DefaultDeployment(gpu(t, "a100"), pair, [][]int{{1}, {2}}, true, 0)
	if err == nil || !strings.HasSuffix(err.Error(), "use large_tp 4") {
		t.Errorf("a TP that is too small: %v", err)
	}
	// Alone on TP 2 the weights fit, 70.55 of 77.31 GB, and leave 6.76 GB for 163,840 bytes a token.
	d := Deployment{GPU: gpu(t, "a100"), GPUs: 2, TP: []int{2}}
	if tokens, err := d.KVTokens(pair[1:]); err != nil || tokens != 41_233 {
		t.Errorf("llama3-70b on TP 2: %d tokens, %v", tokens, err)
	}
	_, err = DefaultDeployment(gpu(t, "a100"), pair[1:], [][]int{{2}}, true, .83)
	want := "deployment: llama3-70b with TP 2 on a100 leaves room for 4533 KV tokens, at least 8192 wanted"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = DefaultDeployment(gpu(t, "a100"), pair, [][]int{{1}, {3}}, true, 0)
	want = "deployment: no usable TP for llama3-70b among (3): wanted one that divides its 64 attention heads"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err = DefaultDeployment(gpu(t, "a100"), pair, [][]int{{1}}, true, 0); err == nil {
		t.Error("a model without a list of TPs")
	}
}

// The capacity is the largest: it fits on every GPU, and one more token does not.
func TestKVTokensIsTheLargestThatFits(t *testing.T) {
	all := Cards()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "models")
		var chosen []Card
		d := Deployment{GPU: rapid.SampledFrom(GPUs()).Draw(t, "gpu"), GPUs: 64,
			Shared: rapid.Bool().Draw(t, "shared"), MemoryShare: rapid.Float64Range(.05, 1).Draw(t, "share")}
		for range n {
			chosen = append(chosen, rapid.SampledFrom(all).Draw(t, "card"))
			d.TP = append(d.TP, rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(t, "tp"))
		}
		tokens, err := d.KVTokens(chosen)
		var fit *FitError
		if err != nil {
			if errors.As(err, &fit) && fit.Advice == "" {
				t.Fatalf("no advice in %v", err)
			}
			return
		}
		if fits(d, chosen, tokens+1) || !fits(d, chosen, tokens) {
			t.Fatalf("%d tokens is not the largest capacity", tokens)
		}
	})
}

// fits lays every model's shards out over the GPUs and adds up.
func fits(d Deployment, cards []Card, tokens int) bool {
	used := make([]int64, d.Needed())
	first := 0
	for i, c := range cards {
		for rank := range d.TP[i] {
			heads := max(1, (c.KVHeads+d.TP[i]-1)/d.TP[i])
			used[first+rank] += (c.WeightBytes()+int64(d.TP[i])-1)/int64(d.TP[i]) +
				int64(tokens)*c.KVBytesPerToken()/int64(c.KVHeads)*int64(heads)
		}
		if !d.Shared {
			first += d.TP[i]
		}
	}
	return slices.Max(used) <= int64(d.MemoryShare*float64(d.GPU.MemoryBytes))
}
