package cpu

import (
	"runtime"
	"time"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
)

// Machine is what the kernels can use of this machine.
type Machine struct {
	SIMD   string   // the level that kernels use unless told otherwise
	Levels []string // those there are, weakest first
	Cores  int      // that goroutines run on
}

// Features says what the kernels can use of this machine.
func Features() Machine {
	m := Machine{SIMD: kernel.Best().String(), Cores: runtime.GOMAXPROCS(0)}
	for _, l := range kernel.Levels() {
		m.Levels = append(m.Levels, l.String())
	}
	return m
}

const (
	bandwidthBytes  = 256 << 20 // read in turn: beyond any cache
	bandwidthWindow = 8 << 20   // read by a core at a time: short, so that some windows are not disturbed
	bandwidthPasses = 4
)

// Bandwidth measures how fast all cores together read memory, bytes a second: what bounds a decode step, which reads
// all weights once. It is the best of many short windows. It takes 256 MiB of memory and some tenths of a second.
func Bandwidth() float64 {
	pool := NewPool(0)
	defer pool.Close()
	level, cores := kernel.Best(), pool.Workers()
	memory := kernel.Bytes(max(bandwidthBytes, cores*bandwidthWindow))
	best := time.Duration(0)
	for range bandwidthPasses {
		for at := 0; at+cores*bandwidthWindow <= len(memory); at += cores * bandwidthWindow {
			began := time.Now()
			pool.run(cores, func(_, part int) { level.Read(memory[at+part*bandwidthWindow:][:bandwidthWindow]) })
			if d := time.Since(began); best == 0 || d < best {
				best = d
			}
		}
	}
	return float64(cores*bandwidthWindow) / best.Seconds()
}
