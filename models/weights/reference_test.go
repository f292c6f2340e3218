package weights

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// TestReference opens models that others wrote and compares every tensor with the bytes that the header points at.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		folder []string
		params int64
		dtype  DType
		scaled bool
	}{
		{[]string{"models", "gsm-pair", "gsm-s"}, 250_944, F32, false},
		{[]string{"models", "gsm-pair", "gsm-l"}, 2_560_320, F32, false},
		{[]string{"models", "stories260K"}, 260_032, F32, false},
		{[]string{"golden", "rand-llama31"}, 164_288, BF16, true},
		{[]string{"golden", "rand-qwen25"}, 144_096, BF16, false},
		{[]string{"golden", "rand-qwen25-untied-f32"}, 164_576, F32, false},
	} {
		t.Run(c.folder[len(c.folder)-1], func(t *testing.T) {
			dir := testutil.Reference(t, c.folder...)
			m, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if m.Params() != c.params || m.Config.Card("").Params() != c.params {
				t.Errorf("%d parameters, %d by the card, want %d", m.Params(), m.Config.Card("").Params(), c.params)
			}
			if (m.Config.RopeScaling.Kind == RopeLlama3) != c.scaled {
				t.Errorf("rotary scaling is %v", m.Config.RopeScaling)
			}
			raw, err := os.ReadFile(filepath.Join(dir, singleFile))
			if err != nil {
				t.Fatal(err)
			}
			if m.Bytes() != int64(len(raw)) {
				t.Errorf("%d bytes, want %d", m.Bytes(), len(raw))
			}
			n := binary.LittleEndian.Uint64(raw)
			var header map[string]struct {
				Offsets [2]int `json:"data_offsets"`
			}
			if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
				t.Fatal(err)
			}
			tensors := []*Tensor{&m.Embedding, &m.Norm, &m.Head}
			for i := range m.Layers {
				for _, r := range m.Layers[i].roles(m.Config) {
					tensors = append(tensors, r.tensor)
				}
			}
			for _, tensor := range tensors {
				if tensor.DType != c.dtype {
					t.Fatalf("%s: %s, want %s", tensor.Name, tensor.DType, c.dtype)
				}
				at := header[tensor.Name].Offsets
				bytes := raw[8+int(n)+at[0] : 8+int(n)+at[1]]
				for i, v := range tensor.Float32() {
					want := float32(0)
					if c.dtype == F32 {
						want = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
					} else {
						want = math.Float32frombits(uint32(binary.LittleEndian.Uint16(bytes[2*i:])) << 16)
					}
					if v != want {
						t.Fatalf("%s: value %d is %v, want %v", tensor.Name, i, v, want)
					}
				}
			}
		})
	}
}
