package kernel

// Run is the number of inputs whose products are added up in sequence before the sum joins the total. It bounds the
// rounding error of long sums, and keeps a panel's part in cache while all rows use it.
const Run = 256

// Product computes y[t][o] = sum over i of x[t][i] w[o][i] for rows t < rows and outputs lo <= o < hi. Row t of x
// starts at x[t*xStep], row t of y at y[t*yStep]; lo and hi are multiples of Unit, at most w.Outputs().
func (l Level) Product(y []float32, yStep int, w *Matrix, x []float32, xStep, rows, lo, hi int) {
	if rows <= 0 || lo >= hi {
		return
	}
	_ = y[(rows-1)*yStep+hi-1]
	_ = x[(rows-1)*xStep+w.inputs-1]
	for o := lo; o < hi; {
		base, width := w.at(o)
		next := min(hi, o-o%panel+width)
		base += o % panel // a line of either type begins at its first output
		for k := 0; k < w.inputs; k += Run {
			n := min(Run, w.inputs-k)
			a := args{x: x[k:], xStep: xStep, k: n, y: y[o:], yStep: yStep, rows: rows, add: k > 0}
			if w.bf16 != nil {
				l.panelBF16(&a, w.bf16[base+k*width:], width, next-o)
			} else {
				l.panelF32(&a, w.f32[base+k*width:], width, next-o)
			}
		}
		o = next
	}
}

// Outer computes y[t][j] = sum over i < k of x[t][i] w[i][j] for rows t < rows and j < width, a multiple of 16. Rows of
// w lie one after the other, those of x and y start every xStep and yStep values. If from is set, the sums go on from
// what is in y: one sum may be computed in any number of parts, bit for bit.
func (l Level) Outer(y []float32, yStep int, w []float32, width int, x []float32, xStep, k, rows int, from bool) {
	if k <= 0 || rows <= 0 {
		return
	}
	_ = y[(rows-1)*yStep+width-1]
	_ = x[(rows-1)*xStep+k-1]
	_ = w[k*width-1]
	a := args{x: x, xStep: xStep, k: k, y: y, yStep: yStep, rows: rows, from: from}
	l.panelF32(&a, w, width, width)
}

// args is what all panel products have in common.
type args struct {
	x, y         []float32
	xStep, yStep int
	k            int  // inputs, >= 1
	rows         int  // >= 1
	from         bool // the sums start from y
	add          bool // the sums are added to y
}
