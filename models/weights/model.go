package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Model is an open model folder. Its tensors are views of mapped files: they end with Close.
type Model struct {
	Config    Config
	Embedding Tensor // [Vocab, Hidden]
	Layers    []Layer
	Norm      Tensor // [Hidden], after the last layer
	Head      Tensor // [Vocab, Hidden]; the embedding itself where Config.Tied

	files []*file
}

// Layer is one transformer block. With Q = Heads * HeadDim and KV = KVHeads * HeadDim:
type Layer struct {
	AttnNorm   Tensor // [Hidden], before attention
	Wq, Wk, Wv Tensor // [Q, Hidden], [KV, Hidden], [KV, Hidden]
	Bq, Bk, Bv Tensor // [Q], [KV], [KV]; present if Config.QKVBias
	QNorm      Tensor // [HeadDim], on each query head before rotation; present if Config.QKNorm
	KNorm      Tensor // [HeadDim], on each key head before rotation; present if Config.QKNorm
	Wo         Tensor // [Hidden, Q]
	MLPNorm    Tensor // [Hidden], before the feed-forward part
	Gate, Up   Tensor // [Intermediate, Hidden]
	Down       Tensor // [Hidden, Intermediate]
}

// Open opens the model in dir: config.json (and the stop tokens of generation_config.json, where there is one), and
// model.safetensors or the shards that model.safetensors.index.json lists. On Unix the files are mapped; elsewhere they
// are read into memory. A file that shrinks while it is mapped faults when it is touched.
func Open(dir string) (*Model, error) { return open(os.DirFS(dir), ".", dir) }

// OpenFS opens the model in folder dir of fsys, such as an embedded one, which is read into memory.
func OpenFS(fsys fs.FS, dir string) (*Model, error) { return open(fsys, dir, dir) }

// Close ends all views of the model. It may be called twice.
func (m *Model) Close() error {
	var errs []error
	for _, f := range m.files {
		errs = append(errs, f.close())
	}
	m.files = nil
	return errors.Join(errs...)
}

// Bytes is the size of the weight files.
func (m *Model) Bytes() int64 {
	var sum int64
	for _, f := range m.files {
		sum += int64(len(f.data))
	}
	return sum
}

// Params is the number of weights; a tied embedding counts once.
func (m *Model) Params() int64 {
	sum := int64(m.Embedding.Len() + m.Norm.Len())
	if !m.Config.Tied {
		sum += int64(m.Head.Len())
	}
	for i := range m.Layers {
		for _, r := range m.Layers[i].roles(m.Config) {
			sum += int64(r.tensor.Len())
		}
	}
	return sum
}

// role says which stored tensor goes where, and the shape that config.json gives it.
type role struct {
	name   string // in the file, within its layer: "self_attn.q_proj.weight"
	shape  []int
	tensor *Tensor
}

// roles lists the tensors of a layer that the configuration asks for.
func (l *Layer) roles(c Config) []role {
	queries, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	list := []role{
		{"input_layernorm.weight", []int{c.Hidden}, &l.AttnNorm},
		{"self_attn.q_proj.weight", []int{queries, c.Hidden}, &l.Wq},
		{"self_attn.k_proj.weight", []int{kv, c.Hidden}, &l.Wk},
		{"self_attn.v_proj.weight", []int{kv, c.Hidden}, &l.Wv},
		{"self_attn.o_proj.weight", []int{c.Hidden, queries}, &l.Wo},
		{"post_attention_layernorm.weight", []int{c.Hidden}, &l.MLPNorm},
		{"mlp.gate_proj.weight", []int{c.Intermediate, c.Hidden}, &l.Gate},
		{"mlp.up_proj.weight", []int{c.Intermediate, c.Hidden}, &l.Up},
		{"mlp.down_proj.weight", []int{c.Hidden, c.Intermediate}, &l.Down},
	}
	if c.QKVBias {
		list = append(list,
			role{"self_attn.q_proj.bias", []int{queries}, &l.Bq},
			role{"self_attn.k_proj.bias", []int{kv}, &l.Bk},
			role{"self_attn.v_proj.bias", []int{kv}, &l.Bv})
	}
	if c.QKNorm {
		list = append(list,
			role{"self_attn.q_norm.weight", []int{c.HeadDim}, &l.QNorm},
			role{"self_attn.k_norm.weight", []int{c.HeadDim}, &l.KNorm})
	}
	return list
}

// open is Open; label stands for the folder in errors.
func open(fsys fs.FS, dir, label string) (*Model, error) {
	config, err := readConfig(fsys, dir, label)
	if err != nil {
		return nil, err
	}
	m := &Model{Config: config}
	stored, err := m.openFiles(fsys, dir, label)
	if err == nil {
		err = m.assign(stored)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// assign gives each stored tensor its role. Every role must be filled and every tensor must have one: a bias that the
// architecture does not know would silently change what the model says.
func (m *Model) assign(stored map[string]storedTensor) error {
	c := m.Config
	// Before a slice is made that is as long as config.json says.
	need := len((&Layer{}).roles(c)) * c.Layers
	if len(stored) < need {
		return fmt.Errorf("%s: num_hidden_layers is %d, which takes %d tensors; the safetensors files hold %d",
			c.source, c.Layers, need, len(stored))
	}
	m.Layers = make([]Layer, c.Layers)
	take := func(name string, r role) error {
		s, ok := stored[name]
		if !ok {
			return fmt.Errorf("%s: no tensor %s in the safetensors files; %s has one of shape %v",
				c.source, name, c.Architecture, r.shape)
		}
		delete(stored, name)
		var err error
		*r.tensor, err = s.tensor(r.shape)
		return err
	}
	for i := range m.Layers {
		prefix := "model.layers." + strconv.Itoa(i) + "."
		for _, r := range m.Layers[i].roles(c) {
			if err := take(prefix+r.name, r); err != nil {
				return err
			}
		}
	}
	matrix := []int{c.Vocab, c.Hidden}
	if err := take("model.embed_tokens.weight", role{shape: matrix, tensor: &m.Embedding}); err != nil {
		return err
	}
	if err := take("model.norm.weight", role{shape: []int{c.Hidden}, tensor: &m.Norm}); err != nil {
		return err
	}
	if c.Tied {
		m.Head = m.Embedding
		delete(stored, "lm_head.weight") // some writers store the tied matrix twice; the embedding is the one that counts
	} else if err := take("lm_head.weight", role{shape: matrix, tensor: &m.Head}); err != nil {
		return err
	}
	return unused(stored, c)
}

// unused reports the first tensor, by name, that found no role. Tables of rotary frequencies, which old writers stored,
// follow from the configuration and are passed over.
func unused(stored map[string]storedTensor, c Config) error {
	first := ""
	for name := range stored {
		if !strings.HasSuffix(name, ".rotary_emb.inv_freq") && (first == "" || name < first) {
			first = name
		}
	}
	if first == "" {
		return nil
	}
	return fmt.Errorf("%s: tensor %s has no place in %s with %d layers", stored[first].file.name, clip(first),
		c.Architecture, c.Layers)
}
