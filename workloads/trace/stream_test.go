package trace

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// synthetic is a ShareGPT file of any length that is never in memory: n conversations of four turns, one object after
// another in an array, pretty-printed so that it has lines.
type synthetic struct {
	n, made int
	left    string
	turn    string
	each    func(read int64) // called now and then
	read    int64
	next    int64
}

func newSynthetic(n int) *synthetic {
	return &synthetic{n: n, turn: strings.Repeat(`words with a \"quote\" and 12 numbers, `, 20)}
}

func (s *synthetic) Read(p []byte) (int, error) {
	if s.left == "" {
		s.left = s.more()
	}
	if s.left == "" {
		return 0, io.EOF
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	s.read += int64(n)
	if s.each != nil && s.read >= s.next {
		s.each(s.read)
		s.next += 1 << 20
	}
	return n, nil
}

func (s *synthetic) more() string {
	defer func() { s.made++ }()
	switch {
	case s.made > s.n:
		return ""
	case s.made == s.n:
		return "\n]\n"
	}
	start := ",\n"
	if s.made == 0 {
		start = "[\n"
	}
	turn := func(role string) string { return fmt.Sprintf("    {\"from\": %q, \"value\": \"%s\"}", role, s.turn) }
	return start + fmt.Sprintf("{\n  \"id\": \"c%d\",\n  \"conversations\": [\n", s.made) +
		strings.Join([]string{turn("human"), turn("gpt"), turn("human"), turn("gpt")}, ",\n") + "\n  ]\n}"
}

// heapInUse is the live heap, less garbage.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A ShareGPT file costs its numbers and a few buffers, however long it is.
func TestShareGPTMemory(t *testing.T) {
	const conversations = 3000
	before := heapInUse()
	var most int64
	s := newSynthetic(conversations)
	s.each = func(int64) { most = max(most, heapInUse()-before) }
	got, err := Read(s, "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Entries) != conversations || s.read < 9<<20 {
		t.Fatalf("%d conversations in %d bytes", len(got.Entries), s.read)
	}
	// 3,000 entries of 48 bytes, twice while the list grows, and buffers of 32, 64 and some kB.
	if limit := int64(768 << 10); most > limit {
		t.Errorf("%d bytes live while reading a file of %d, want at most %d", most, s.read, limit)
	}
}

func BenchmarkShareGPT(b *testing.B) {
	for _, mb := range []int{4, 64} {
		b.Run(fmt.Sprintf("size=%dMB", mb), func(b *testing.B) {
			n := mb << 20 / 3200
			var most int64
			for b.Loop() {
				before := heapInUse()
				s := newSynthetic(n)
				s.each = func(int64) { most = max(most, heapInUse()-before) }
				if _, err := Read(s, "f", Options{}); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(s.read)
			}
			b.ReportMetric(float64(most), "peak-live-B")
		})
	}
}
