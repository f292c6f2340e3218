package calibrate

import "math"

// terms is the number of coefficients of an affine law: those of latency.Affine, in its order.
const terms = 6

// gram is the least-squares problem of minimising sum w (y - x b)^2, in its normal equations: a is sum w x x', c is
// sum w x y.
type gram struct {
	a [terms][terms]float64
	c [terms]float64
}

// add counts one observation.
func (g *gram) add(x *[terms]float64, y, w float64) {
	for i, xi := range x {
		if xi == 0 {
			continue
		}
		wx := w * xi
		for j := i; j < terms; j++ {
			g.a[i][j] += wx * x[j]
		}
		g.c[i] += wx * y
	}
}

// collinear is how much of a column may be left, of its length squared, after the columns before it are projected out,
// for it to count as nothing but their sum.
const collinear = 1e-9

// identified says which coefficients the observations tell apart. Columns are taken in the given order; one that the
// earlier ones already span tells nothing.
func (g *gram) identified(order [terms]int) (known [terms]bool) {
	var l [terms][terms]float64 // Cholesky factor over the kept columns, each scaled to length 1
	var kept []int
	for _, j := range order {
		if !(g.a[j][j] > 0) {
			continue
		}
		rest := 1.0
		for p, i := range kept {
			v := g.at(i, j) / math.Sqrt(g.a[i][i]*g.a[j][j])
			for q := range p {
				v -= l[p][q] * l[len(kept)][q]
			}
			v /= l[p][p]
			l[len(kept)][p] = v
			rest -= v * v
		}
		if rest < collinear {
			continue
		}
		l[len(kept)][len(kept)] = math.Sqrt(rest)
		kept = append(kept, j)
		known[j] = true
	}
	return known
}

func (g *gram) at(i, j int) float64 {
	if i > j {
		i, j = j, i
	}
	return g.a[i][j]
}

// minimise moves b to the least-squares solution over the known coefficients with all of them >= 0. c is that of the
// residuals at b, so that only the move is solved for and what b has right is kept to the last digit. With so few terms
// every set of coefficients at the bound is tried: exact, and nothing to cycle.
func (g *gram) minimise(b *[terms]float64, known [terms]bool) {
	best, least := *b, math.Inf(1)
	for set := range 1 << terms {
		var free []int
		allowed := true
		for j := range terms {
			if set>>j&1 == 0 {
				continue
			}
			allowed = allowed && known[j]
			free = append(free, j)
		}
		if !allowed {
			continue
		}
		var move [terms]float64
		for j := range terms {
			move[j] = -b[j]
		}
		if !g.solve(free, &move) {
			continue
		}
		feasible := true
		for _, j := range free {
			feasible = feasible && b[j]+move[j] >= 0
		}
		if !feasible {
			continue
		}
		// The loss, less what it is at b.
		loss := 0.0
		for i := range terms {
			loss -= 2 * move[i] * g.c[i]
			for j := range terms {
				loss += move[i] * g.at(i, j) * move[j]
			}
		}
		if loss < least {
			least = loss
			for j := range terms {
				best[j] = 0
			}
			for _, j := range free {
				best[j] = b[j] + move[j]
			}
		}
	}
	*b = best
}

// solve sets the free entries of move to the solution of the normal equations, given the others. It fails where the
// free columns are collinear.
func (g *gram) solve(free []int, move *[terms]float64) bool {
	n := len(free)
	var l [terms][terms]float64
	var z [terms]float64
	isFree := [terms]bool{}
	for _, j := range free {
		isFree[j] = true
	}
	for p, i := range free {
		scale := math.Sqrt(g.a[i][i])
		if !(scale > 0) {
			return false
		}
		for q, j := range free[:p+1] {
			v := g.at(i, j) / scale / math.Sqrt(g.a[j][j])
			for k := range q {
				v -= l[p][k] * l[q][k]
			}
			if p == q {
				if v < collinear {
					return false
				}
				l[p][p] = math.Sqrt(v)
			} else {
				l[p][q] = v / l[q][q]
			}
		}
		right := g.c[i]
		for j := range terms {
			if !isFree[j] {
				right -= g.at(i, j) * move[j]
			}
		}
		right /= scale
		for k := range p {
			right -= l[p][k] * z[k]
		}
		z[p] = right / l[p][p]
	}
	for p := n - 1; p >= 0; p-- {
		for q := p + 1; q < n; q++ {
			z[p] -= l[q][p] * z[q]
		}
		z[p] /= l[p][p]
		move[free[p]] = z[p] / math.Sqrt(g.a[free[p]][free[p]])
	}
	return true
}
