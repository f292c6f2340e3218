package markov

import (
	"context"
	"testing"
	"time"
)

func BenchmarkBuild(b *testing.B) {
	m := Model{R2R(.35), Fixed(6*time.Millisecond, 27900*time.Microsecond)}
	g, _ := m.grid(64, 0)
	for b.Loop() {
		build(context.Background(), g, m.Routing, []int{1, 1}, 64, 8<<30)
	}
}
