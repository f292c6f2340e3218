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
	var p product
	switch l {
	case Generic:
		panelF32Generic(a, w, wStep, width)
	case AVX2:
		p.fill(a, wStep, 4)
		p.f32AVX2(a, w, width)
	case AVX512:
		p.fill(a, wStep, 4)
		p.f32AVX512(a, w, width)
	}
}

// panelBF16 is a product with bfloat16 weights, a multiple of Unit wide.
func (l Level) panelBF16(a *args, w []uint16, wStep, width int) {
	var p product
	switch l {
	case Generic:
		panelBF16Generic(a, w, wStep, width)
	case AVX2:
		p.fill(a, wStep, 2)
		p.bf16AVX2(a, w, width)
	case AVX512:
		p.fill(a, wStep, 2)
		p.bf16AVX512(a, w, width)
	}
}

func (p *product) f32AVX512(a *args, w []float32, width int) {
	for j := 0; j < width; {
		p.w, p.y = unsafe.Pointer(&w[j]), &a.y[j]
		switch {
		case width-j >= 64:
			panelF32x64AVX512(p)
			j += 64
		case width-j >= 32:
			panelF32x32AVX512(p)
			j += 32
		default:
			panelF32x16AVX512(p)
			j += 16
		}
	}
}

func (p *product) bf16AVX512(a *args, w []uint16, width int) {
	for j := 0; j < width; {
		p.w, p.y = unsafe.Pointer(&w[j]), &a.y[j]
		if width-j >= 64 {
			panelBF16x64AVX512(p)
			j += 64
			continue
		}
		panelBF16x32AVX512(p)
		j += Unit
	}
}

// Sixteen AVX2 registers hold the sums of six rows for 16 outputs only, so a panel is read in slices. Rows beyond a
// multiple of six go first, alone, over all outputs: they read the panel in order, and leave it in cache for the
// slices.

func (p *product) f32AVX2(a *args, w []float32, width int) {
	j := 0
	if !a.from {
		for ; width-j >= 64; j += 64 {
			p.w = unsafe.Pointer(&w[j])
			whole := a.rows / 6 * 6
			for r := whole; r < a.rows; r++ {
				p.x, p.y = &a.x[r*a.xStep], &a.y[r*a.yStep+j]
				rowF32x64AVX2(p)
			}
			p.x, p.rows = &a.x[0], whole
			for s := j; s < j+64 && whole > 0; s += 16 {
				p.w, p.y = unsafe.Pointer(&w[s]), &a.y[s]
				if s == j && whole == a.rows {
					firstF32x16AVX2(p)
				} else {
					panelF32x16AVX2(p)
				}
			}
		}
		p.rows = a.rows
	}
	for ; j < width; j += 16 {
		p.w, p.y = unsafe.Pointer(&w[j]), &a.y[j]
		panelF32x16AVX2(p)
	}
}

func (p *product) bf16AVX2(a *args, w []uint16, width int) {
	whole := a.rows / 6 * 6
	for j := 0; j < width; {
		wide := min(64, width-j)
		p.w = unsafe.Pointer(&w[j])
		for r := whole; r < a.rows; r++ {
			p.x, p.y = &a.x[r*a.xStep], &a.y[r*a.yStep+j]
			if wide == 64 {
				rowBF16x64AVX2(p)
			} else {
				rowBF16x32AVX2(p)
			}
		}
		p.x, p.rows = &a.x[0], whole
		for s := 0; s < wide && whole > 0; s += 16 {
			// Half a line of words holds outputs 0 to 7 and 16 to 23 of the line, or 8 to 15 and 24 to 31.
			p.w, p.y = unsafe.Pointer(&w[j+s]), &a.y[j+s&^31+s&16/2]
			if s == 0 && whole == a.rows {
				firstBF16x16AVX2(p)
			} else {
				panelBF16x16AVX2(p)
			}
		}
		j += wide
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
func rowBF16x64AVX2(p *product)

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
func expAVX512(x *float32, n int, max float32) float32

//go:noescape
func expSumsAVX512(x *float32, n int, max float32) (sum, weighted float32)

//go:noescape
func siluAVX512(gate, up *float32, n int)

//go:noescape
func mulAVX2(y, x, w *float32, n int, scale float32)

//go:noescape
func addAVX2(y, x *float32, n int)

//go:noescape
func readAVX2(x *byte, n int) uint64

func pause()

// Pause spends some tens of nanoseconds of a waiting loop, and tells the core that it waits.
func Pause() { pause() }
