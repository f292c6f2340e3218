package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// Level is the instruction set that kernels use.
type Level uint8

// The levels, weakest first.
const (
	Generic Level = iota // plain Go
	AVX2                 // AVX2 and FMA, 256-bit
	AVX512               // AVX-512 F, 512-bit; element-wise kernels without an exponential are AVX2's
)

var names = [...]string{Generic: "generic", AVX2: "avx2", AVX512: "avx512"}

// String is the name that Parse takes.
func (l Level) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// Levels lists what this machine can run, weakest first; Generic is always there.
func Levels() []Level { return append([]Level{Generic}, supported()...) }

// Best is the strongest level of this machine.
func Best() Level {
	all := Levels()
	return all[len(all)-1]
}

// Parse returns the named level; the empty name is Best. It is an error if this machine does not have it.
func Parse(name string) (Level, error) {
	if name == "" {
		return Best(), nil
	}
	l := slices.Index(names[:], strings.ToLower(name))
	if l < 0 {
		return 0, fmt.Errorf("SIMD level %q: want one of %s", name, strings.Join(names[:], ", "))
	}
	if !slices.Contains(Levels(), Level(l)) {
		return 0, fmt.Errorf("SIMD level %q: this machine has %v", name, Levels())
	}
	return Level(l), nil
}
