package models

import (
	"strings"
	"testing"
)

// Published counts: the model cards' totals (Llama-3: 8.03 and 70.6 billion; Qwen2.5-7B: 7.61; ...), to the last weight
// as the checkpoints' tensors sum up. Tied checkpoints count the embedding once.
func TestParamsAreThePublishedOnes(t *testing.T) {
	want := map[string]int64{
		"llama2-7b":    6_738_415_616,
		"llama2-70b":   68_976_648_192,
		"llama3-8b":    8_030_261_248,
		"llama3-70b":   70_553_706_496,
		"qwen2.5-1.5b": 1_543_714_304,
		"qwen2.5-7b":   7_615_616_512,
		"qwen2.5-14b":  14_770_033_664,
		"qwen2.5-32b":  32_763_876_352,
		"qwen2.5-72b":  72_706_203_648,
		"qwen3-0.6b":   596_049_920,
		"qwen3-1.7b":   1_720_574_976,
		"qwen3-4b":     4_022_468_096,
		"qwen3-8b":     8_190_735_360,
		"qwen3-32b":    32_762_123_264,
	}
	for _, c := range Cards() {
		if c.Params() != want[c.Name] {
			t.Errorf("%s has %d weights, want %d", c.Name, c.Params(), want[c.Name])
		}
		if c.WeightBytes() != 2*want[c.Name] {
			t.Errorf("%s weighs %d bytes", c.Name, c.WeightBytes())
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("no card for %v", want)
	}
}

func TestKVBytesPerToken(t *testing.T) {
	for name, want := range map[string]int64{
		"llama2-7b":  512 << 10, // 2 (K, V) x 2 bytes x 32 layers x 32 heads x 128
		"llama3-8b":  128 << 10,
		"llama3-70b": 320 << 10,
		"qwen2.5-7b": 56 << 10,
		"qwen3-0.6b": 112 << 10,
		"qwen3-32b":  256 << 10,
	} {
		c, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.KVBytesPerToken(); got != want {
			t.Errorf("%s: %d bytes a token, want %d", name, got, want)
		}
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"llama3-8b": "llama3-8b", "llama3.1-8b": "llama3-8b", "Llama-3.1-8B": "llama3-8b", "Llama-3-70B": "llama3-70b",
		"Meta-Llama-3-8B": "llama3-8b", "Meta-Llama-3-70B-Instruct": "llama3-70b", "LLAMA-2-7B-chat": "llama2-7b",
		"Qwen2.5-72B": "qwen2.5-72b", "Qwen3-0.6B": "qwen3-0.6b", " qwen3-32b ": "qwen3-32b",
	} {
		if c, err := Lookup(name); err != nil || c.Name != want {
			t.Errorf("Lookup(%q) = %q, %v, want %q", name, c.Name, err, want)
		}
	}
	for name, want := range map[string]string{
		"lama3-8b":     `unknown model "lama3-8b": did you mean llama3-8b? (trbench models list shows all)`,
		"Lama-3.1-70b": `unknown model "Lama-3.1-70b": did you mean llama3-70b? (trbench models list shows all)`,
		"gpt-4-turbo":  `unknown model "gpt-4-turbo" (trbench models list shows all)`,
	} {
		if _, err := Lookup(name); err == nil || err.Error() != want {
			t.Errorf("Lookup(%q): %v, want %s", name, err, want)
		}
	}
}

func TestNamesAreUnambiguous(t *testing.T) {
	owner := map[string]string{}
	for _, c := range Cards() {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			if name != strings.ToLower(name) {
				t.Errorf("%q is not lower case: Lookup would miss it", name)
			}
			if owner[name] != "" {
				t.Errorf("%q names both %s and %s", name, owner[name], c.Name)
			}
			owner[name] = c.Name
		}
	}
}

func TestLookupsReturnCopies(t *testing.T) {
	a, _ := Lookup("llama3-8b")
	a.Aliases[0] = "spoilt"
	if b, _ := Lookup("llama3-8b"); b.Aliases[0] == "spoilt" {
		t.Error("a caller's change reaches the next lookup")
	}
}
