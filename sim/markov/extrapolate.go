package markov

import "math"

// extrapolator accelerates a linear fixed-point iteration x -> G x + c by reduced rank extrapolation: of the last few
// iterates it takes the affine combination whose next change is least. That is what GMRES finds from the same start, so
// a few slow modes, which a plain iteration would suffer for ever, are taken out at once. Source: A. Sidi, Vector
// Extrapolation Methods with Applications (SIAM, 2017).
type extrapolator struct {
	window int // changes that one extrapolation combines
	xs     [][]float64
	spare  [][]float64
}

// add records an iterate. Once window + 1 changes' worth have come it returns the combination, valid until the next
// call, and starts again from it; before that, nil.
func (e *extrapolator) add(x []float64) []float64 {
	e.push(x)
	if len(e.xs) < e.window+2 {
		return nil
	}
	y := e.combine()
	e.reset()
	if y != nil {
		e.push(y)
	}
	return y
}

// reset forgets all iterates.
func (e *extrapolator) reset() {
	e.spare = append(e.spare, e.xs...)
	e.xs = e.xs[:0]
}

func (e *extrapolator) push(x []float64) {
	var v []float64
	if n := len(e.spare); n > 0 {
		v, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		v = make([]float64, len(x))
	}
	copy(v, x)
	e.xs = append(e.xs, v)
}

// combine minimises |U g| over sum g = 1, U the changes, by an orthogonal factorisation U = Q R: g is proportional to
// the solution of R' R g = 1. A change that depends on those before it ends the window: with it |U g| comes down to
// rounding. It overwrites all iterates but the first, and returns nil where it found no combination.
func (e *extrapolator) combine() []float64 {
	k := len(e.xs) - 1
	// Change j goes where iterate j+1 was, last first.
	for j := k; j >= 1; j-- {
		for i, x := range e.xs[j-1] {
			e.xs[j][i] -= x
		}
	}
	u := e.xs[1:] // u[j] = x_{j+1} - x_j, then column j of Q
	r := make([][]float64, k)
	rank := 0
	for j := range k {
		r[j] = make([]float64, k) // r[j][i] = R_ij, i <= j
		before := math.Sqrt(dot(u[j], u[j]))
		if before == 0 {
			break
		}
		for i := range j {
			r[j][i] = dot(u[i], u[j])
			axpy(u[j], -r[j][i], u[i])
		}
		r[j][j] = math.Sqrt(dot(u[j], u[j]))
		rank++
		if r[j][j] <= 1e-13*before {
			r[j][j] = 1e-13 * before
			break
		}
		for i := range u[j] {
			u[j][i] /= r[j][j]
		}
	}
	if rank < 2 {
		return nil
	}
	k = rank
	g := make([]float64, k)
	for j := range k { // R' a = 1
		g[j] = 1
		for i := range j {
			g[j] -= r[j][i] * g[i]
		}
		g[j] /= r[j][j]
	}
	for j := k - 1; j >= 0; j-- { // R g = a
		for i := j + 1; i < k; i++ {
			g[j] -= r[i][j] * g[i]
		}
		g[j] /= r[j][j]
	}
	sum := 0.0
	for _, x := range g {
		sum += x
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil
	}
	// sum_j g_j x_j = x_0 + sum_j h_j u_j with h_j = g_{j+1} + ... + g_{k-1}, and u_j = Q R e_j.
	x := e.xs[0]
	tail := 0.0
	coef := make([]float64, k)
	for j := k - 1; j >= 1; j-- {
		tail += g[j] / sum
		for i := range j {
			coef[i] += tail * r[j-1][i]
		}
	}
	for i := range k - 1 {
		axpy(x, coef[i], u[i])
	}
	return x
}

// dot returns the sum of a_i b_i over the length of a. Four sums side by side hide the latency of the additions.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return s0 + s1 + (s2 + s3)
}

// axpy adds s*x to y.
func axpy(y []float64, s float64, x []float64) {
	x = x[:len(y)]
	for i := range y {
		y[i] += s * x[i]
	}
}
