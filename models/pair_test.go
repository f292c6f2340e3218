package models

import (
	"strings"
	"testing"
)

func TestPairs(t *testing.T) {
	if Pairs()[0].Name != DefaultPair {
		t.Errorf("first pair is %s, want the default, %s", Pairs()[0].Name, DefaultPair)
	}
	for _, p := range Pairs() {
		again, err := NewPair(p.Models...) // checks number and order
		if err != nil || again.Name != p.Name {
			t.Errorf("NewPair of %s's models = %q, %v", p.Name, again.Name, err)
		}
		found, err := LookupPair(strings.ToUpper(p.Name))
		if err != nil || found.Name != p.Name {
			t.Errorf("LookupPair(%s) = %q, %v", p.Name, found.Name, err)
		}
	}
	_, err := LookupPair("lama3-8b-70b")
	if err == nil || !strings.HasPrefix(err.Error(), `unknown pair "lama3-8b-70b": did you mean llama3-8b-70b? (known: `) {
		t.Errorf("LookupPair: %v", err)
	}
	if _, err := LookupPair("mistral"); err == nil {
		t.Error("an unknown pair is found")
	}
}

func TestNewPair(t *testing.T) {
	small, large := mustLookup(t, "qwen3-4b"), mustLookup(t, "llama3-70b")
	p, err := NewPair(small, large)
	if err != nil || p.Name != "qwen3-4b+llama3-70b" {
		t.Errorf("NewPair = %q, %v", p.Name, err)
	}
	if _, err := NewPair(small, small); err != nil {
		t.Errorf("a model paired with itself: %v", err)
	}
	_, err = NewPair(large, small)
	want := "models go smallest first: qwen3-4b (4.02 billion weights) follows llama3-70b (70.55 billion)"
	if err == nil || err.Error() != want {
		t.Errorf("NewPair in the wrong order: %v, want %s", err, want)
	}
	if _, err := NewPair(small); err == nil {
		t.Error("a pair of one model")
	}
}

func TestLookupGPU(t *testing.T) {
	for name, want := range map[string]string{"A100": "a100", "a100-sxm-80gb": "a100", "h100": "h100", "H200": "h200"} {
		if g, err := LookupGPU(name); err != nil || g.Name != want {
			t.Errorf("LookupGPU(%q) = %q, %v, want %q", name, g.Name, err, want)
		}
	}
	want := `unknown GPU "a10": did you mean a100? (known: a100, h100, h200)`
	if _, err := LookupGPU("a10"); err == nil || err.Error() != want {
		t.Errorf("LookupGPU: %v, want %s", err, want)
	}
	if _, err := LookupGPU("tpu-v5"); err == nil || !strings.Contains(err.Error(), "known: a100") {
		t.Errorf("LookupGPU: %v", err)
	}
}

func mustLookup(t *testing.T, name string) Card {
	t.Helper()
	c, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
