package weights

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// llama31 is the form of Llama 3.1's config.json, with the fields of its 8B model.
const llama31 = `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256}`

func TestConfig(t *testing.T) {
	c, err := parseConfig([]byte(llama31), "config.json")
	if err != nil {
		t.Fatal(err)
	}
	want := RopeScaling{Kind: RopeLlama3, Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192}
	if c.Architecture != Llama || c.Layers != 32 || c.Hidden != 4096 || c.Heads != 32 || c.KVHeads != 8 ||
		c.HeadDim != 128 || c.Intermediate != 14336 || c.Vocab != 128256 || c.MaxPositions != 131072 ||
		c.RopeTheta != 500000 || c.RopeScaling != want || c.NormEps != 1e-5 || c.Tied || c.QKVBias || c.QKNorm ||
		c.BOS != 128000 || !slices.Equal(c.EOS, []int32{128001, 128008, 128009}) {
		t.Errorf("%+v", c)
	}
	if n := c.Card("llama3.1-8b").Params(); n != 8_030_261_248 { // as its model card counts
		t.Errorf("%d parameters", n)
	}
}

// TestConfigDefaults: what older and smaller files leave out, and how newer ones spell it.
func TestConfigDefaults(t *testing.T) {
	const base = `"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96,
		"vocab_size": 100`
	parse := func(text string) Config {
		t.Helper()
		c, err := parseConfig([]byte(text), "config.json")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := parse(`{"architectures": ["LlamaForCausalLM"], ` + base + `}`)
	if c.KVHeads != 4 || c.HeadDim != 16 || c.MaxPositions != 2048 || c.RopeTheta != 10_000 || c.NormEps != 1e-6 ||
		c.RopeScaling != (RopeScaling{Kind: RopePlain, Factor: 1}) || c.Tied || c.BOS != -1 || c.EOS != nil {
		t.Errorf("Llama: %+v", c)
	}
	c = parse(`{"architectures": ["Qwen2ForCausalLM"], "bos_token_id": null, "eos_token_id": 7, "sliding_window": 10,
		"use_sliding_window": false, "rope_scaling": null, ` + base + `}`)
	if !c.QKVBias || c.QKNorm || c.MaxPositions != 32_768 || !slices.Equal(c.EOS, []int32{7}) {
		t.Errorf("Qwen 2: %+v", c)
	}
	c = parse(`{"architectures": ["Qwen3ForCausalLM"], "layer_types": ["full_attention"], ` + base + `,
		"rope_parameters": {"rope_theta": 1000000, "rope_type": "linear", "factor": 2}}`)
	if c.QKVBias || !c.QKNorm || c.HeadDim != 128 || c.RopeTheta != 1e6 ||
		c.RopeScaling != (RopeScaling{Kind: RopeLinear, Factor: 2}) {
		t.Errorf("Qwen 3: %+v", c)
	}
	c = parse(`{"architectures": ["LlamaForCausalLM"], "rope_scaling": {"type": "linear", "factor": 4}, ` + base + `}`)
	if c.RopeScaling != (RopeScaling{Kind: RopeLinear, Factor: 4}) {
		t.Errorf("old spelling: %+v", c.RopeScaling)
	}
}

func TestConfigErrors(t *testing.T) {
	for change, want := range map[string]string{
		`"architectures": ["MambaForCausalLM"]`: `architectures is ["MambaForCausalLM"], wanted one of ` +
			`LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM`,
		`"architectures": null`:                 `architectures is [], wanted one of`,
		`"num_hidden_layers": null`:             `num_hidden_layers is missing`,
		`"num_hidden_layers": 0`:                `num_hidden_layers is 0, wanted 1 to 10000`,
		`"hidden_size": "64"`:                   `config.json:1: hidden_size is a JSON string, wanted int`,
		`"hidden_size": 1e99`:                   `config.json:1: hidden_size is a JSON number 1e99, wanted int`,
		`"vocab_size": 1e9`:                     `vocab_size is a JSON number 1e9`,
		`"vocab_size": 1000000000`:              `vocab_size is 1000000000, wanted 1 to 16777216`,
		`"num_key_value_heads": 5`:              `num_attention_heads is 32, wanted a multiple of num_key_value_heads, 5`,
		`"head_dim": 127`:                       `head_dim is 127 with 32 heads, wanted an even number`,
		`"head_dim": 16777216`:                  `head_dim is 16777216 with 32 heads`,
		`"hidden_size": 4097`:                   `hidden_size 4097 is no multiple of num_attention_heads, 32`,
		`"rms_norm_eps": 0`:                     `rms_norm_eps is 0`,
		`"rope_theta": -1`:                      `rope_theta is -1`,
		`"rope_scaling": {"rope_type": "yarn"}`: `rope_scaling: type is "yarn", wanted one of default, linear, llama3`,
		`"rope_scaling": {"type": "linear"}`:    `rope_scaling: factor is 0`,
		`"rope_scaling": {"rope_type": "llama3", "factor": 8, ` +
			`"low_freq_factor": 4, "high_freq_factor": 1}`: `wanted 0 < low < high`,
		`"rope_scaling": {"rope_type": "llama3", "factor": 8, ` +
			`"low_freq_factor": 1, "high_freq_factor": 4}`: `original_max_position_embeddings is 0`,
		`"eos_token_id": 128256`:                                 `eos_token_id is 128256, wanted 0 to 128255`,
		`"eos_token_id": "x"`:                                    `config.json:1: eos_token_id`,
		`"bos_token_id": [1, 2]`:                                 `bos_token_id is [1 2], wanted one id`,
		`"hidden_act": "gelu"`:                                   `hidden_act is "gelu", wanted silu`,
		`"attention_bias": true`:                                 `attention_bias is true`,
		`"mlp_bias": true`:                                       `mlp_bias is true`,
		`"use_sliding_window": true, "sliding_window": 4096`:     `use_sliding_window is true with a window of 4096`,
		`"layer_types": ["full_attention", "sliding_attention"]`: `layer_types[1] is "sliding_attention"`,
		`"quantization_config": {"bits": 4}`:                     `quantization_config is set`,
		"\n\n]":                                                  `config.json:3: invalid character`,
	} {
		// The last of two equal keys counts, so that a change can stand behind the rest; only objects are merged.
		text := strings.ReplaceAll(strings.TrimSuffix(llama31, "}"), "\n", " ") + ", " + change + "}"
		text = strings.Replace(text, `"rope_scaling"`, `"was_rope_scaling"`, strings.Count(text, `"rope_scaling"`)-1)
		_, err := parseConfig([]byte(text), "config.json")
		if err == nil || !strings.HasPrefix(err.Error(), "config.json:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", change, err, want)
		}
	}
}

// TestStops: generation_config.json adds to the ends of text, once each.
func TestStops(t *testing.T) {
	fsys := single(tiny.config(), tiny.tensors())
	for text, want := range map[string][]int32{
		`{}`:                          {2, 3},
		`{"eos_token_id": [3, 5, 2]}`: {2, 3, 5},
		`{"eos_token_id": 9}`:         {2, 3, 9},
	} {
		fsys["generation_config.json"] = &fstest.MapFile{Data: []byte(text)}
		m, err := OpenFS(fsys, ".")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.Config.EOS, want) {
			t.Errorf("%s: %v, want %v", text, m.Config.EOS, want)
		}
	}
	fsys["generation_config.json"] = &fstest.MapFile{Data: []byte(`{"eos_token_id": 10}`)}
	_, err := OpenFS(fsys, ".")
	if err == nil || !strings.Contains(err.Error(), "generation_config.json: eos_token_id is 10") {
		t.Errorf("an end that is no token: %v", err)
	}
}

// TestInvFreq compares with the closed form, and Llama 3's scaling with its statement by wavelengths.
func TestInvFreq(t *testing.T) {
	c := Config{HeadDim: 4, RopeTheta: 10_000}
	if got := c.InvFreq(); len(got) != 2 || got[0] != 1 || math.Abs(got[1]-.01) > 1e-17 {
		t.Errorf("%v, want 1 and 0.01", got)
	}
	c.RopeScaling = RopeScaling{Kind: RopeLinear, Factor: 4}
	if got := c.InvFreq(); got[0] != .25 {
		t.Errorf("linear: %v, want 0.25 first", got)
	}
	c = Config{HeadDim: 128, RopeTheta: 500_000,
		RopeScaling: RopeScaling{Kind: RopeLlama3, Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192}}
	kept, between, divided := 0, 0, 0
	for i, got := range c.InvFreq() {
		plain := math.Pow(500_000, -float64(i)/64)
		length := 2 * math.Pi / plain
		var want float64
		switch {
		case length < 8192./4:
			want = plain
			kept++
		case length > 8192./1:
			want = plain / 8
			divided++
		default:
			smooth := (8192/length - 1) / (4 - 1)
			want = (1-smooth)*plain/8 + smooth*plain
			between++
		}
		if math.Abs(got-want) > 1e-15*want {
			t.Errorf("pair %d: %v, want %v", i, got, want)
		}
	}
	if kept != 29 || between != 6 || divided != 29 {
		t.Errorf("%d kept, %d between, %d divided", kept, between, divided)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(llama31))
	for _, arch := range Architectures() {
		s := tiny
		s.arch = arch
		text, err := json.Marshal(s.config())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseConfig(text, "config.json")
		if err != nil {
			return
		}
		if c.Layers < 1 || c.Hidden < 1 || c.KVHeads < 1 || c.Heads%c.KVHeads != 0 || c.HeadDim < 2 || c.HeadDim%2 != 0 ||
			c.Vocab < 1 || c.Card("x").Params() <= 0 {
			t.Fatalf("%+v", c)
		}
		if c.HeadDim <= 1024 {
			for i, freq := range c.InvFreq() {
				if !(freq >= 0 && freq <= 1) {
					t.Fatalf("frequency %d is %v: %+v", i, freq, c)
				}
			}
		}
		for _, id := range append(c.EOS, max(c.BOS, 0)) {
			if id < 0 || int(id) >= c.Vocab {
				t.Fatalf("token %d of %d", id, c.Vocab)
			}
		}
	})
}
