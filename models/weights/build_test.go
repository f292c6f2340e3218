package weights

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing/fstest"
)

// stored is a tensor on its way into a test file.
type stored struct {
	name  string
	dtype string
	shape []int
	data  []byte
}

// safetensors writes a file as the format's own library does: header padded with spaces to 8 bytes.
func safetensors(tensors ...stored) []byte {
	var header strings.Builder
	header.WriteString(`{"__metadata__":{"format":"pt"}`)
	var data []byte
	for _, t := range tensors {
		name, err := json.Marshal(t.name)
		if err != nil {
			panic(err)
		}
		shape, err := json.Marshal(append([]int{}, t.shape...))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&header, `,%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`,
			name, t.dtype, shape, len(data), len(data)+len(t.data))
		data = append(data, t.data...)
	}
	header.WriteString("}")
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	return file8(header.String(), data)
}

// file8 is a file of any header, well-formed or not.
func file8(header string, data []byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), data...)
}

// spec describes a test model.
type spec struct {
	arch                                                Architecture
	layers, hidden, heads, kvHeads, headDim, mid, vocab int
	tied                                                bool
	dtype                                               DType
}

var tiny = spec{arch: Llama, layers: 2, hidden: 8, heads: 4, kvHeads: 2, headDim: 2, mid: 6, vocab: 10, dtype: F32}

func (s spec) config() map[string]any {
	return map[string]any{
		"architectures": []string{string(s.arch)}, "num_hidden_layers": s.layers, "hidden_size": s.hidden,
		"num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads, "head_dim": s.headDim,
		"intermediate_size": s.mid, "vocab_size": s.vocab, "tie_word_embeddings": s.tied,
		"rms_norm_eps": 1e-5, "rope_theta": 10_000, "max_position_embeddings": 64,
		"bos_token_id": 1, "eos_token_id": []int{2, 3},
	}
}

// tensors lists the model's tensors, written out by hand rather than from the loader's own table. The values of tensor
// i are i, i + 1/256, i + 2/256, …: a value says which tensor it is of and where.
func (s spec) tensors() []stored {
	q, kv := s.heads*s.headDim, s.kvHeads*s.headDim
	var list []stored
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		t := stored{name: name, dtype: s.dtype.String(), shape: shape}
		for i := range n {
			t.data = appendValue(t.data, s.dtype, float32(len(list))+float32(i)/256)
		}
		list = append(list, t)
	}
	add("model.embed_tokens.weight", s.vocab, s.hidden)
	for i := range s.layers {
		l := fmt.Sprintf("model.layers.%d.", i)
		add(l+"input_layernorm.weight", s.hidden)
		add(l+"self_attn.q_proj.weight", q, s.hidden)
		add(l+"self_attn.k_proj.weight", kv, s.hidden)
		add(l+"self_attn.v_proj.weight", kv, s.hidden)
		if s.arch == Qwen2 {
			add(l+"self_attn.q_proj.bias", q)
			add(l+"self_attn.k_proj.bias", kv)
			add(l+"self_attn.v_proj.bias", kv)
		}
		if s.arch == Qwen3 {
			add(l+"self_attn.q_norm.weight", s.headDim)
			add(l+"self_attn.k_norm.weight", s.headDim)
		}
		add(l+"self_attn.o_proj.weight", s.hidden, q)
		add(l+"post_attention_layernorm.weight", s.hidden)
		add(l+"mlp.gate_proj.weight", s.mid, s.hidden)
		add(l+"mlp.up_proj.weight", s.mid, s.hidden)
		add(l+"mlp.down_proj.weight", s.hidden, s.mid)
	}
	add("model.norm.weight", s.hidden)
	if !s.tied {
		add("lm_head.weight", s.vocab, s.hidden)
	}
	return list
}

// appendValue stores a value, cut to the type.
func appendValue(dst []byte, dtype DType, v float32) []byte {
	bits := math.Float32bits(v)
	switch dtype {
	case BF16:
		return binary.LittleEndian.AppendUint16(dst, uint16(bits>>16))
	case F16: // the test's values are normal halves
		return binary.LittleEndian.AppendUint16(dst, half(v))
	}
	return binary.LittleEndian.AppendUint32(dst, bits)
}

// half is the largest half that is not above a value from 0 to 65504.
func half(v float32) uint16 {
	best := uint16(0)
	for bit := uint16(1 << 14); bit > 0; bit >>= 1 {
		if h := best | bit; halfValue(h) <= float64(v) {
			best = h
		}
	}
	return best
}

// halfValue is what a half stands for, by IEEE 754's definition.
func halfValue(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&0x1f), float64(h&0x3ff)
	if h>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// folder is a model folder in memory.
func folder(config map[string]any, files map[string][]byte) fstest.MapFS {
	text, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	fsys := fstest.MapFS{"config.json": {Data: text}}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: data}
	}
	return fsys
}

// single is a model folder with one weight file.
func single(config map[string]any, tensors []stored) fstest.MapFS {
	return folder(config, map[string][]byte{singleFile: safetensors(tensors...)})
}

// sharded is a model folder with its tensors dealt to n files in turn.
func sharded(config map[string]any, tensors []stored, n int) fstest.MapFS {
	shards := make([][]stored, n)
	index := make(map[string]string)
	name := func(i int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n) }
	for i, t := range tensors {
		shards[i%n] = append(shards[i%n], t)
		index[t.name] = name(i % n)
	}
	files := make(map[string][]byte)
	for i, tensors := range shards {
		files[name(i)] = safetensors(tensors...)
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": index})
	if err != nil {
		panic(err)
	}
	files[indexFile] = text
	return folder(config, files)
}
