//go:build !amd64

package kernel

// supported lists the levels above Generic: there are none, so none of the stand-ins below is ever called.
func supported() []Level { return nil }

func (l Level) panelF32(a *args, w []float32, wStep, width int) { panelF32Generic(a, w, wStep, width) }

func (l Level) panelBF16(a *args, w []uint16, wStep, width int) { panelBF16Generic(a, w, wStep, width) }

const noAssembly = "kernel: no assembly for this machine"

func sumSquaresAVX2(*float32, int) float32                { panic(noAssembly) }
func maxAVX2(*float32, int) float32                       { panic(noAssembly) }
func expAVX2(*float32, int, float32) float32              { panic(noAssembly) }
func expSumsAVX2(*float32, int, float32) (_, _ float32)   { panic(noAssembly) }
func siluAVX2(_, _ *float32, _ int)                       { panic(noAssembly) }
func expAVX512(*float32, int, float32) float32            { panic(noAssembly) }
func expSumsAVX512(*float32, int, float32) (_, _ float32) { panic(noAssembly) }
func siluAVX512(_, _ *float32, _ int)                     { panic(noAssembly) }
func mulAVX2(_, _, _ *float32, _ int, _ float32)          { panic(noAssembly) }
func addAVX2(_, _ *float32, _ int)                        { panic(noAssembly) }
func readAVX2(*byte, int) uint64                          { panic(noAssembly) }

// Pause spends some tens of nanoseconds of a waiting loop.
func Pause() {
	for range 64 {
	}
}
