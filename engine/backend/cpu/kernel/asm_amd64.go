package kernel

import "unsafe"

// product is the argument of the panel kernels. Steps are in bytes.
type product struct {
	w     unsafe.Pointer
	wStep uintptr // from the weights of one input to the next
	x     *float32
	xStep uintptr
	k     int // inputs, >= 1
	y     *float32
	yStep uintptr
	rows  int
	from  int // 1: the sums start from y
	add   int // 1: the sums are added to y
}

// fill makes a product of a; size is the bytes of a weight.
func (p *product) fill(a *args, wStep, size int) {
	*p = product{
		wStep: uintptr(wStep * size), x: &a.x[0], xStep: uintptr(a.xStep) * 4, k: a.k,
		yStep: uintptr(a.yStep) * 4, rows: a.rows, from: word(a.from), add: word(a.add),
	}
}

func word(b bool) int {
	if b {
		return 1
	}
	return 0
}

// panelF32 is a product with float32 weights; those of input i start at w[i*wStep].
func (l Level) panelF32(a *args, w []float32, wStep, width int) {
	if l == Generic {
		panelF32Generic(a, w, wStep, width)
		return
	}
	var p product
	p.fill(a, wStep, 4)
	for j := 0; j < width; {
		p.w, p.y = unsafe.Pointer(&w[j]), &a.y[j]
		switch {
		case l == AVX512 && width-j >= 64:
			panelF32x64AVX512(&p)
			j += 64
		case l == AVX512 && width-j >= 32:
			panelF32x32AVX512(&p)
			j += 32
		case l == AVX512:
			panelF32x16AVX512(&p)
			j += 16
		case width-j >= 64 && a.rows == 1 && !a.from:
			rowF32x64AVX2(&p)
			j += 64
		case j%64 == 0:
			firstF32x16AVX2(&p)
			j += 16
		default:
			panelF32x16AVX2(&p)
			j += 16
		}
	}
}

// panelBF16 is a product with bfloat16 weights, a multiple of Unit wide.
func (l Level) panelBF16(a *args, w []uint16, wStep, width int) {
	if l == Generic {
		panelBF16Generic(a, w, wStep, width)
		return
	}
	var p product
	p.fill(a, wStep, 2)
	for j := 0; j < width; {
		p.w, p.y = unsafe.Pointer(&w[j]), &a.y[j]
		switch {
		case l == AVX512 && width-j >= 64:
			panelBF16x64AVX512(&p)
			j += 64
		case l == AVX512:
			panelBF16x32AVX512(&p)
			j += Unit
		case a.rows == 1:
			rowBF16x32AVX2(&p)
			j += Unit
		default:
			if j == 0 {
				firstBF16x16AVX2(&p)
			} else {
				panelBF16x16AVX2(&p)
			}
			p.w, p.y = unsafe.Pointer(&w[j+16]), &a.y[j+8]
			panelBF16x16AVX2(&p)
			j += Unit
		}
	}
}

//go:noescape
func panelF32x64AVX512(p *product)

//go:noescape
func panelF32x32AVX512(p *product)

//go:noescape
func panelF32x16AVX512(p *product)

//go:noescape
func panelBF16x64AVX512(p *product)

//go:noescape
func panelBF16x32AVX512(p *product)

//go:noescape
func panelF32x16AVX2(p *product)

//go:noescape
func panelBF16x16AVX2(p *product)

//go:noescape
func firstF32x16AVX2(p *product)

//go:noescape
func firstBF16x16AVX2(p *product)

//go:noescape
func rowF32x64AVX2(p *product)

//go:noescape
func rowBF16x32AVX2(p *product)

//go:noescape
func sumSquaresAVX2(x *float32, n int) float32

//go:noescape
func maxAVX2(x *float32, n int) float32

//go:noescape
func expAVX2(x *float32, n int, max float32) float32

//go:noescape
func expSumsAVX2(x *float32, n int, max float32) (sum, weighted float32)

//go:noescape
func siluAVX2(gate, up *float32, n int)

//go:noescape
func mulAVX2(y, x, w *float32, n int, scale float32)

//go:noescape
func addAVX2(y, x *float32, n int)

//go:noescape
func readAVX2(x *byte, n int) uint64

func pause()

// Pause spends a few nanoseconds of a waiting loop, and says so to the core.
func Pause() { pause() }
