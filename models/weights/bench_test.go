package weights

import (
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// BenchmarkOpen maps gsm-l: 10 MB in 74 tensors.
func BenchmarkOpen(b *testing.B) {
	dir := testutil.Reference(b, "models", "gsm-pair", "gsm-l")
	b.ReportAllocs()
	for b.Loop() {
		m, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
