package weights

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// onDisk writes a folder out, so that Open maps it.
func onDisk(t testing.TB, fsys fstest.MapFS) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRoles opens every architecture in every stored type, tied and not, in one file and in three, mapped and read, and
// checks each value of each tensor.
func TestRoles(t *testing.T) {
	for _, arch := range Architectures() {
		for _, dtype := range []DType{F32, F16, BF16} {
			for _, tied := range []bool{false, true} {
				s := tiny
				s.arch, s.dtype, s.tied = arch, dtype, tied
				for name, fsys := range map[string]fstest.MapFS{
					"single":  single(s.config(), s.tensors()),
					"sharded": sharded(s.config(), s.tensors(), 3),
				} {
					read, err := OpenFS(fsys, ".")
					if err != nil {
						t.Fatalf("%s %s tied=%v %s: %v", arch, dtype, tied, name, err)
					}
					checkRoles(t, s, read)
					mapped, err := Open(onDisk(t, fsys))
					if err != nil {
						t.Fatalf("%s %s tied=%v %s: %v", arch, dtype, tied, name, err)
					}
					checkRoles(t, s, mapped)
					for range 2 {
						if err := mapped.Close(); err != nil {
							t.Error(err)
						}
					}
				}
			}
		}
	}
}

// checkRoles compares a model with the tensors it was made of.
func checkRoles(t *testing.T, s spec, m *Model) {
	t.Helper()
	roles := map[string]*Tensor{"model.embed_tokens.weight": &m.Embedding, "model.norm.weight": &m.Norm}
	if !s.tied {
		roles["lm_head.weight"] = &m.Head
	} else if &m.Head.Data[0] != &m.Embedding.Data[0] {
		t.Error("the tied head is not the embedding")
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		for name, tensor := range map[string]*Tensor{
			"input_layernorm.weight": &l.AttnNorm, "post_attention_layernorm.weight": &l.MLPNorm,
			"self_attn.q_proj.weight": &l.Wq, "self_attn.k_proj.weight": &l.Wk, "self_attn.v_proj.weight": &l.Wv,
			"self_attn.q_proj.bias": &l.Bq, "self_attn.k_proj.bias": &l.Bk, "self_attn.v_proj.bias": &l.Bv,
			"self_attn.q_norm.weight": &l.QNorm, "self_attn.k_norm.weight": &l.KNorm,
			"self_attn.o_proj.weight": &l.Wo, "mlp.gate_proj.weight": &l.Gate, "mlp.up_proj.weight": &l.Up,
			"mlp.down_proj.weight": &l.Down,
		} {
			roles["model.layers."+string(rune('0'+i))+"."+name] = tensor
		}
	}
	params := int64(0)
	for _, want := range s.tensors() {
		got := roles[want.name]
		if got.Name != want.name || got.DType != s.dtype || !got.Present() {
			t.Fatalf("%s: got %s %s", want.name, got.Name, got.DType)
		}
		delete(roles, want.name)
		values, first := got.Float32(), 0
		params += int64(len(values))
		row := make([]float32, got.Cols())
		for i := range got.Rows() {
			for _, v := range got.Row(row, i) {
				if v != values[first] {
					t.Fatalf("%s: value %d is %v by row, %v in all", want.name, first, v, values[first])
				}
				first++
			}
		}
		if first != got.Len() || (got.F32() != nil) != (s.dtype == F32) || (got.Halves() != nil) != (s.dtype != F32) {
			t.Fatalf("%s: %d values in rows, %d in all", want.name, first, got.Len())
		}
		var stored []byte
		for _, v := range values {
			stored = appendValue(stored, s.dtype, v)
		}
		if string(stored) != string(want.data) {
			t.Fatalf("%s: other values than were stored", want.name)
		}
	}
	for name, tensor := range roles {
		if tensor.Present() || tensor.Len() != 0 || tensor.Float32() != nil {
			t.Errorf("%s: is there, and was not stored", name)
		}
	}
	if card := m.Config.Card("x").Params(); m.Params() != params || card != params {
		t.Errorf("%d parameters, %d by the card, want %d", m.Params(), card, params)
	}
}

// TestUnaligned: a header whose length is odd puts every value at an odd address.
func TestUnaligned(t *testing.T) {
	s := tiny
	raw := safetensors(s.tensors()...)
	at := strings.Index(string(raw), "}}") + 2 // the end of the header's JSON
	data := raw[len(raw)-dataSize(s.tensors()):]
	for pad := range 5 {
		header := string(raw[8:at]) + strings.Repeat(" ", pad)
		fsys := folder(s.config(), map[string][]byte{singleFile: file8(header, data)})
		for _, open := range []func() (*Model, error){
			func() (*Model, error) { return OpenFS(fsys, ".") },
			func() (*Model, error) { return Open(onDisk(t, fsys)) },
		} {
			m, err := open()
			if err != nil {
				t.Fatal(err)
			}
			checkRoles(t, s, m)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func dataSize(tensors []stored) int {
	n := 0
	for _, t := range tensors {
		n += len(t.data)
	}
	return n
}

// TestTolerated: what other writers leave in a file and means nothing.
func TestTolerated(t *testing.T) {
	s := tiny
	s.tied = true
	extra := append(s.tensors(),
		stored{"lm_head.weight", "F32", []int{s.vocab, s.hidden}, make([]byte, 4*s.vocab*s.hidden)},
		stored{"model.layers.0.self_attn.rotary_emb.inv_freq", "F64", []int{1}, make([]byte, 8)})
	m, err := OpenFS(single(s.config(), extra), ".")
	if err != nil {
		t.Fatal(err)
	}
	checkRoles(t, s, m)
}

// TestRefused: models that are not what they say.
func TestRefused(t *testing.T) {
	with := func(change func(config map[string]any, tensors []stored) []stored) fstest.MapFS {
		config, tensors := tiny.config(), tiny.tensors()
		tensors = change(config, tensors)
		return single(config, tensors)
	}
	set := func(key string, value any) fstest.MapFS {
		return with(func(c map[string]any, list []stored) []stored {
			c[key] = value
			return list
		})
	}
	shards := func(change func(fsys fstest.MapFS)) fstest.MapFS {
		fsys := sharded(tiny.config(), tiny.tensors(), 2)
		change(fsys)
		return fsys
	}
	index := func(from, to string) fstest.MapFS {
		return shards(func(fsys fstest.MapFS) {
			fsys[indexFile].Data = []byte(strings.Replace(string(fsys[indexFile].Data), from, to, 1))
		})
	}
	for name, c := range map[string]struct {
		fsys fstest.MapFS
		want []string // parts of the error
	}{
		"no config":  {fstest.MapFS{}, []string{"dir/config.json: file does not exist"}},
		"no weights": {folder(tiny.config(), nil), []string{"dir: holds neither model.safetensors nor"}},
		"missing tensor": {with(func(_ map[string]any, l []stored) []stored { return append(l[:3], l[4:]...) }),
			[]string{"dir/config.json: no tensor model.layers.0.self_attn.k_proj.weight", "[4 8]"}},
		"no head": {with(func(_ map[string]any, l []stored) []stored { return l[:len(l)-1] }),
			[]string{"no tensor lm_head.weight", "[10 8]"}},
		"shape": {set("intermediate_size", 7), []string{"dir/model.safetensors: tensor model.layers.0.mlp.gate_proj.weight",
			"shape is [6 8], config.json makes it [7 8]"}},
		"too many layers": {set("num_hidden_layers", 9_999), []string{"num_hidden_layers is 9999", "89991 tensors",
			"hold 21"}},
		"too few layers": {set("num_hidden_layers", 1), []string{"dir/model.safetensors: tensor",
			`"model.layers.1.input_layernorm.weight" has no place in LlamaForCausalLM with 1 layers`}},
		"bias of another architecture": {with(func(_ map[string]any, l []stored) []stored {
			return append(l, stored{"model.layers.0.self_attn.q_proj.bias", "F32", []int{8}, make([]byte, 32)})
		}), []string{"q_proj.bias", "has no place in LlamaForCausalLM"}},
		"dtype": {with(func(_ map[string]any, l []stored) []stored {
			l[1].dtype, l[1].data = "I64", make([]byte, 64)
			return l
		}), []string{"input_layernorm.weight: dtype is I64, wanted F32, F16 or BF16"}},
		"index: no shard": {index("model-00002-of-00002", "model-00009-of-00002"),
			[]string{"dir/model-00009-of-00002.safetensors: file does not exist"}},
		"index: wrong shard": {index(`"lm_head.weight":"model-00001-of-00002`, `"lm_head.weight":"model-00002-of-00002`),
			[]string{"index.json", `tensor "lm_head.weight": is in dir/model-00001-of-00002.safetensors, not in dir/model-0`}},
		"index: unknown": {index(`"lm_head.weight"`, `"lm_tail.weight"`),
			[]string{"index.json", `tensor "lm_tail.weight": is not in dir/model-00001`}},
		"index: escapes": {index(`model-00001-of-00002.safetensors"`, `../x"`),
			[]string{"index.json", `file "../x" is no plain file name`}},
		"index: broken": {index(`}`, `]`), []string{"index.json: invalid character"}},
		"index: twice": {shards(func(f fstest.MapFS) {
			f[indexFile].Data = []byte(`{"weight_map":{"a":"x","a":"y"}}`)
		}), []string{`tensor "a": named twice`}},
		"index: empty": {shards(func(f fstest.MapFS) { f[indexFile].Data = []byte(`{}`) }),
			[]string{"weight_map is missing"}},
		"tensor in two shards": {shards(func(f fstest.MapFS) {
			f["model-00002-of-00002.safetensors"] = f["model-00001-of-00002.safetensors"]
		}), []string{"dir/model-00002-of-00002.safetensors: tensor", "is in dir/model-00001-of-00002.safetensors too"}},
	} {
		fsys := fstest.MapFS{}
		for file, data := range c.fsys {
			fsys["dir/"+file] = data
		}
		m, err := OpenFS(fsys, "dir")
		if err == nil {
			t.Errorf("%s: opened, %d layers", name, len(m.Layers))
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q, want it to say %q", name, err, part)
			}
		}
	}
}

// TestTruncated: no beginning of a file is a model, nor is a file with a tail.
func TestTruncated(t *testing.T) {
	s := tiny
	s.layers = 1
	whole := safetensors(s.tensors()...)
	for n := range len(whole) {
		fsys := folder(s.config(), map[string][]byte{singleFile: whole[:n]})
		if _, err := OpenFS(fsys, "."); err == nil {
			t.Fatalf("opened the first %d of %d bytes", n, len(whole))
		} else if !strings.HasPrefix(err.Error(), singleFile+": ") {
			t.Fatalf("%d bytes: the error does not begin with the file: %v", n, err)
		}
	}
	_, err := OpenFS(folder(s.config(), map[string][]byte{singleFile: append(whole, 0)}), ".")
	if err == nil || !strings.Contains(err.Error(), "bytes of data, but the tensors end at") {
		t.Errorf("a byte too many: %v", err)
	}
	dir := onDisk(t, folder(s.config(), map[string][]byte{singleFile: {}}))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, singleFile)+": 0 bytes") {
		t.Errorf("an empty file: %v", err)
	}
}

// TestLiesCostNothing: claims of huge models in small files are refused before anything of their size is allocated.
func TestLiesCostNothing(t *testing.T) {
	big := tiny.config()
	for key, value := range map[string]int{"num_hidden_layers": maxLayers, "hidden_size": maxWidth, "vocab_size": maxWidth,
		"intermediate_size": maxWidth, "max_position_embeddings": maxPositions} {
		big[key] = value
	}
	for name, fsys := range map[string]fstest.MapFS{
		"config":        single(big, tiny.tensors()),
		"header length": folder(tiny.config(), map[string][]byte{singleFile: {0, 0, 0, 0, 0, 1, 0, 0, '{', '}'}}),
		"offsets": folder(tiny.config(), map[string][]byte{singleFile: file8(
			`{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}`, nil)}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := OpenFS(fsys, ".")
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: opened", name)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
			t.Errorf("%s: %d bytes allocated to find out that %v", name, used, err)
		}
	}
}
