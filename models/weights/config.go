package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/trbench/trbench/models"
)

// Architecture is a class of models, as config.json names it.
type Architecture string

// The supported architectures.
const (
	Llama Architecture = "LlamaForCausalLM" // Llama 2, 3, 3.1, 3.2
	Qwen2 Architecture = "Qwen2ForCausalLM" // Qwen 2 and 2.5: bias on query, key and value
	Qwen3 Architecture = "Qwen3ForCausalLM" // norm on each query and key head
)

// Architectures lists the supported ones.
func Architectures() []Architecture { return []Architecture{Llama, Qwen2, Qwen3} }

// Bounds on what config.json may say, far above any model: products of two stay within an int64.
const (
	maxLayers    = 10_000
	maxWidth     = 1 << 24
	maxPositions = 1 << 30
	maxConfig    = 1 << 20 // bytes of config.json, which has about 1 kB
)

// Config is a model's architecture: what config.json says, checked, its defaults filled in.
type Config struct {
	Architecture Architecture

	Layers       int
	Hidden       int // width of the residual stream
	Heads        int // query heads; a multiple of KVHeads
	KVHeads      int
	HeadDim      int // even; Heads * HeadDim need not be Hidden
	Intermediate int // width of the gated feed-forward layer
	Vocab        int // rows of the embedding, padding included
	MaxPositions int // tokens of prompt and output that the model was made for

	RopeTheta   float64 // base of the rotary frequencies; see InvFreq
	RopeScaling RopeScaling
	NormEps     float64 // added to the mean square in every RMS norm

	Tied    bool // the output layer is the embedding
	QKVBias bool // query, key and value projections have a bias
	QKNorm  bool // queries and keys have an RMS norm of HeadDim weights, before rotation

	BOS int32   // -1 where there is none
	EOS []int32 // tokens that end an output: of config.json, then of generation_config.json; may be empty

	source string // path of config.json, for errors
}

// Card is the architecture as the scheduler's memory accounts want it.
func (c Config) Card(name string) models.Card {
	return models.Card{Name: name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, Intermediate: c.Intermediate, Vocab: c.Vocab,
		TiedEmbeddings: c.Tied, QKVBias: c.QKVBias, QKNorm: c.QKNorm}
}

// configFile is config.json as it is written. A pointer tells an absent field from a zero.
type configFile struct {
	Architectures []string `json:"architectures"`
	HiddenAct     *string  `json:"hidden_act"`

	Layers       *int `json:"num_hidden_layers"`
	Hidden       *int `json:"hidden_size"`
	Heads        *int `json:"num_attention_heads"`
	KVHeads      *int `json:"num_key_value_heads"`
	HeadDim      *int `json:"head_dim"`
	Intermediate *int `json:"intermediate_size"`
	Vocab        *int `json:"vocab_size"`
	MaxPositions *int `json:"max_position_embeddings"`

	NormEps     *float64  `json:"rms_norm_eps"`
	RopeTheta   *float64  `json:"rope_theta"`
	RopeScaling *ropeFile `json:"rope_scaling"`
	Rope        *ropeFile `json:"rope_parameters"` // where transformers 5 writes both of the above

	Tied *bool    `json:"tie_word_embeddings"`
	BOS  tokenIDs `json:"bos_token_id"`
	EOS  tokenIDs `json:"eos_token_id"`

	// What would change the forward pass and is not supported.
	AttentionBias bool            `json:"attention_bias"`
	MLPBias       bool            `json:"mlp_bias"`
	UseSliding    bool            `json:"use_sliding_window"`
	Sliding       *int            `json:"sliding_window"`
	LayerTypes    []string        `json:"layer_types"`
	Quantization  json.RawMessage `json:"quantization_config"`
}

// ropeFile is rope_scaling, or rope_parameters.
type ropeFile struct {
	Type     string   `json:"rope_type"`
	OldType  string   `json:"type"` // the key before transformers 4.43
	Theta    *float64 `json:"rope_theta"`
	Factor   float64  `json:"factor"`
	LowFreq  float64  `json:"low_freq_factor"`
	HighFreq float64  `json:"high_freq_factor"`
	Original int      `json:"original_max_position_embeddings"`
}

// tokenIDs is a token id, a list of them, or null.
type tokenIDs []int32

func (t *tokenIDs) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) {
		return json.Unmarshal(text, (*[]int32)(t))
	}
	var one *int32
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	*t = nil
	if one != nil {
		*t = tokenIDs{*one}
	}
	return nil
}

// readConfig reads config.json in dir, and the stop tokens of generation_config.json where that is present.
func readConfig(fsys fs.FS, dir, label string) (Config, error) {
	source := path.Join(label, "config.json")
	text, err := readText(fsys, path.Join(dir, "config.json"), source, maxConfig)
	if err != nil {
		return Config{}, err
	}
	c, err := parseConfig(text, source)
	if err != nil {
		return Config{}, err
	}
	source = path.Join(label, "generation_config.json")
	text, err = readText(fsys, path.Join(dir, "generation_config.json"), source, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return Config{}, err
	}
	return c, c.addStops(text, source)
}

// readText reads a file of at most so many bytes; source stands for it in errors.
func readText(fsys fs.FS, name, source string, most int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, cause(err))
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s: %d bytes, wanted at most %d", source, info.Size(), most)
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, cause(err))
	}
	return text, nil
}

// parseConfig reads the text of config.json; source stands for it in errors.
func parseConfig(text []byte, source string) (Config, error) {
	var f configFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Config{}, jsonError(source, text, err)
	}
	c, err := f.config()
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", source, err)
	}
	c.source = source
	return c, nil
}

// addStops adds the stop tokens of generation_config.json: chat models name more of them there.
func (c *Config) addStops(text []byte, source string) error {
	var f struct {
		EOS tokenIDs `json:"eos_token_id"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return jsonError(source, text, err)
	}
	for _, id := range f.EOS {
		if err := c.checkID("eos_token_id", id); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		if !slices.Contains(c.EOS, id) {
			c.EOS = append(c.EOS, id)
		}
	}
	return nil
}

// config checks the file and fills in the defaults of its architecture.
func (f *configFile) config() (Config, error) {
	arch, err := f.architecture()
	if err != nil {
		return Config{}, err
	}
	if err := f.unsupported(); err != nil {
		return Config{}, err
	}
	c := Config{
		Architecture: arch,
		MaxPositions: 2048, // transformers' default for Llama
		NormEps:      1e-6,
		RopeTheta:    10_000,
		RopeScaling:  RopeScaling{Kind: RopePlain, Factor: 1},
		QKVBias:      arch == Qwen2,
		QKNorm:       arch == Qwen3,
		BOS:          -1,
	}
	if arch != Llama {
		c.MaxPositions = 32_768 // and for Qwen
	}
	sizes := []struct {
		field string
		from  *int
		to    *int
		most  int
	}{
		{"num_hidden_layers", f.Layers, &c.Layers, maxLayers},
		{"hidden_size", f.Hidden, &c.Hidden, maxWidth},
		{"num_attention_heads", f.Heads, &c.Heads, maxWidth},
		{"num_key_value_heads", orElse(f.KVHeads, f.Heads), &c.KVHeads, maxWidth},
		{"intermediate_size", f.Intermediate, &c.Intermediate, maxWidth},
		{"vocab_size", f.Vocab, &c.Vocab, maxWidth},
		{"max_position_embeddings", orElse(f.MaxPositions, &c.MaxPositions), &c.MaxPositions, maxPositions},
	}
	for _, s := range sizes {
		if s.from == nil {
			return Config{}, fmt.Errorf("%s is missing", s.field)
		}
		if *s.from < 1 || *s.from > s.most {
			return Config{}, fmt.Errorf("%s is %d, wanted 1 to %d", s.field, *s.from, s.most)
		}
		*s.to = *s.from
	}
	if err := c.setHeads(f); err != nil {
		return Config{}, err
	}
	if err := c.setReals(f); err != nil {
		return Config{}, err
	}
	c.Tied = f.Tied != nil && *f.Tied
	return c, c.setIDs(f)
}

// setHeads checks the heads and derives their width where it is not given.
func (c *Config) setHeads(f *configFile) error {
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("num_attention_heads is %d, wanted a multiple of num_key_value_heads, %d", c.Heads, c.KVHeads)
	}
	switch {
	case f.HeadDim != nil:
		c.HeadDim = *f.HeadDim
	case c.Architecture == Qwen3:
		c.HeadDim = 128 // transformers' default for Qwen 3
	case c.Hidden%c.Heads != 0:
		return fmt.Errorf("head_dim is missing, and hidden_size %d is no multiple of num_attention_heads, %d",
			c.Hidden, c.Heads)
	default:
		c.HeadDim = c.Hidden / c.Heads
	}
	if c.HeadDim < 2 || c.HeadDim%2 != 0 || c.HeadDim > maxWidth/c.Heads {
		return fmt.Errorf("head_dim is %d with %d heads, wanted an even number from 2 to %d", c.HeadDim, c.Heads,
			maxWidth/c.Heads)
	}
	return nil
}

// setReals takes the norm's epsilon and the rotary embedding's numbers.
func (c *Config) setReals(f *configFile) error {
	if f.NormEps != nil {
		c.NormEps = *f.NormEps
	}
	if !(c.NormEps > 0 && c.NormEps < 1) {
		return fmt.Errorf("rms_norm_eps is %v, wanted above 0 and below 1", c.NormEps)
	}
	scaling := f.RopeScaling
	theta := f.RopeTheta
	if f.Rope != nil {
		scaling, theta = f.Rope, orElse(f.Rope.Theta, theta)
	}
	if theta != nil {
		c.RopeTheta = *theta
	}
	if !(c.RopeTheta > 1) || math.IsInf(c.RopeTheta, 0) {
		return fmt.Errorf("rope_theta is %v, wanted above 1", c.RopeTheta)
	}
	if scaling != nil {
		c.RopeScaling = scaling.scaling()
	}
	return c.RopeScaling.check()
}

// scaling is the file's rotary scaling, unchecked.
func (r *ropeFile) scaling() RopeScaling {
	kind := r.Type
	if kind == "" {
		kind = r.OldType
	}
	if kind == "" || RopeKind(kind) == RopePlain {
		return RopeScaling{Kind: RopePlain, Factor: 1}
	}
	s := RopeScaling{Kind: RopeKind(kind), Factor: r.Factor}
	if s.Kind == RopeLlama3 {
		s.LowFreq, s.HighFreq, s.Original = r.LowFreq, r.HighFreq, r.Original
	}
	return s
}

func (c *Config) setIDs(f *configFile) error {
	if len(f.BOS) > 1 {
		return fmt.Errorf("bos_token_id is %v, wanted one id", []int32(f.BOS))
	}
	if len(f.BOS) == 1 {
		c.BOS = f.BOS[0]
		if err := c.checkID("bos_token_id", c.BOS); err != nil {
			return err
		}
	}
	for _, id := range f.EOS {
		if err := c.checkID("eos_token_id", id); err != nil {
			return err
		}
		c.EOS = append(c.EOS, id)
	}
	return nil
}

func (c *Config) checkID(field string, id int32) error {
	if id < 0 || int(id) >= c.Vocab {
		return fmt.Errorf("%s is %d, wanted 0 to %d", field, id, c.Vocab-1)
	}
	return nil
}

// architecture picks the supported class that the file names.
func (f *configFile) architecture() (Architecture, error) {
	for _, a := range Architectures() {
		if slices.Contains(f.Architectures, string(a)) {
			return a, nil
		}
	}
	var known []string
	for _, a := range Architectures() {
		known = append(known, string(a))
	}
	return "", fmt.Errorf("architectures is %q, wanted one of %s", f.Architectures, strings.Join(known, ", "))
}

// unsupported reports a setting that would change the forward pass in a way that no backend computes.
func (f *configFile) unsupported() error {
	if f.HiddenAct != nil && *f.HiddenAct != "silu" {
		return fmt.Errorf("hidden_act is %q, wanted silu", *f.HiddenAct)
	}
	if f.AttentionBias {
		return errors.New("attention_bias is true, which is not supported")
	}
	if f.MLPBias {
		return errors.New("mlp_bias is true, which is not supported")
	}
	for i, kind := range f.LayerTypes {
		if kind != "full_attention" {
			return fmt.Errorf("layer_types[%d] is %q, wanted full_attention", i, kind)
		}
	}
	if f.UseSliding && f.Sliding != nil && (f.MaxPositions == nil || *f.Sliding < *f.MaxPositions) {
		return fmt.Errorf("use_sliding_window is true with a window of %d tokens: only full attention is supported",
			*f.Sliding)
	}
	if len(f.Quantization) > 0 && string(f.Quantization) != "null" {
		return errors.New("quantization_config is set; weights must be stored as F32, F16 or BF16")
	}
	return nil
}

func orElse[T any](p, fallback *T) *T {
	if p != nil {
		return p
	}
	return fallback
}
