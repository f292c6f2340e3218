package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trbench/trbench/internal/suggest"
)

const mebibyte = 1 << 20

// GPU is one accelerator's name and memory.
//
// MemoryBytes is what the card's label promises in binary units, as the driver reports it before it takes its own
// share (nvidia-smi, rounded up where cards of one type differ by less than 1 %): an "80 GB" card has 81920 MiB, which
// is 80 GiB or 85.9 GB. This package's messages give decimal GB.
type GPU struct {
	Name        string // canonical, lower case
	Aliases     []string
	MemoryBytes int64
}

// GPUs returns the known accelerators. Each has step times in models/latency.
func GPUs() []GPU {
	return []GPU{
		{"a100", []string{"a100-80gb", "a100-sxm", "a100-sxm-80gb"}, 81920 * mebibyte},
		{"h100", []string{"h100-80gb", "h100-sxm", "h100-sxm-80gb"}, 81920 * mebibyte},
		{"h200", []string{"h200-141gb", "h200-sxm", "h200-sxm-141gb"}, 143771 * mebibyte},
	}
}

// GPUNames returns the names of GPUs, in its order.
func GPUNames() []string {
	var names []string
	for _, g := range GPUs() {
		names = append(names, g.Name)
	}
	return names
}

// LookupGPU returns an accelerator by name or alias, case ignored. The error of an unknown name gives the nearest known
// one, and all of them.
func LookupGPU(name string) (GPU, error) {
	folded := strings.ToLower(strings.TrimSpace(name))
	for _, g := range GPUs() {
		if folded == g.Name || slices.Contains(g.Aliases, folded) {
			return g, nil
		}
	}
	known := strings.Join(GPUNames(), ", ")
	if near, ok := suggest.Nearest(folded, GPUNames()); ok {
		return GPU{}, fmt.Errorf("unknown GPU %q: did you mean %s? (known: %s)", name, near, known)
	}
	return GPU{}, fmt.Errorf("unknown GPU %q (known: %s)", name, known)
}
