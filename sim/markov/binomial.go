package markov

// at is the place of (c, x), 0 <= x <= c, in a triangle: row after row, each one longer than the last.
func at(c, x int) int { return c*(c+1)/2 + x }

// rowOf returns row c of a triangle.
func rowOf(triangle []float64, c int) []float64 { return triangle[at(c, 0):at(c+1, 0)] }

// binomials returns the distributions of successes in 0..n trials with chances p and q = 1 - p, a triangle, by Pascal's
// rule: nothing is subtracted.
func binomials(n int, p, q float64) []float64 {
	t := make([]float64, at(n+1, 0))
	t[0] = 1
	for c := 1; c <= n; c++ {
		row := rowOf(t, c)
		for x, w := range rowOf(t, c-1) {
			row[x] += w * q
			row[x+1] += w * p
		}
	}
	return t
}

// fourRows returns rows m to m-3.
func fourRows(triangle []float64, m int) (r0, r1, r2, r3 []float64) {
	end := at(m+1, 0)
	t := triangle[:end]
	r0, t = t[end-m-1:], t[:end-m-1]
	r1, t = t[len(t)-m:], t[:len(t)-m]
	r2, t = t[len(t)-m+1:], t[:len(t)-m+1]
	return r0, r1, r2, t[len(t)-m+2:]
}

// spread adds to out, for every m, mass[m] times row m of the triangle: at 0..m, or, if slid, at the end of out, where
// those beyond m that were not tried stay. Both have the same length. Four rows at a time, to touch out a quarter as
// often; none where there is no more mass than drop.
func spread(out, triangle, mass []float64, slid bool, drop float64) {
	last := len(out) - 1
	m := last
	for ; m >= 3; m -= 4 {
		w0, w1, w2, w3 := mass[m], mass[m-1], mass[m-2], mass[m-3]
		if w0+w1+w2+w3 <= drop {
			continue
		}
		r0, r1, r2, r3 := fourRows(triangle, m)
		if !slid {
			// Places 0..m-3 are in all four rows.
			r0c, r1c, r2c, o := r0[:len(r3)], r1[:len(r3)], r2[:len(r3)], out[:len(r3)]
			for x, p := range r3 {
				o[x] += w3*p + w2*r2c[x] + w1*r1c[x] + w0*r0c[x]
			}
			out[m-2] += w2*r2[m-2] + w1*r1[m-2] + w0*r0[m-2]
			out[m-1] += w1*r1[m-1] + w0*r0[m-1]
			out[m] += w0 * r0[m]
			continue
		}
		// Row m-j starts at last-m+j.
		at := last - m
		out[at] += w0 * r0[0]
		out[at+1] += w0*r0[1] + w1*r1[0]
		out[at+2] += w0*r0[2] + w1*r1[1] + w2*r2[0]
		r0c, r1c, r2c, o := r0[3:][:len(r3)], r1[2:][:len(r3)], r2[1:][:len(r3)], out[at+3:][:len(r3)]
		for x, p := range r3 {
			o[x] += w3*p + w2*r2c[x] + w1*r1c[x] + w0*r0c[x]
		}
	}
	for ; m >= 0; m-- {
		if mass[m] > drop {
			row, from := rowOf(triangle, m), 0
			if slid {
				from = last - m
			}
			axpy(out[from:][:len(row)], mass[m], row)
		}
	}
}

// expect is the adjoint of spread: it sets out[m] to the mean of value over row m, placed in the same way.
func expect(out, triangle, value []float64, slid bool) {
	last := len(out) - 1
	m := last
	for ; m >= 3; m -= 4 {
		r0, r1, r2, r3 := fourRows(triangle, m)
		var s0, s1, s2, s3 float64
		var v []float64
		if !slid {
			r0c, r1c, r2c := r0[:len(r3)], r1[:len(r3)], r2[:len(r3)]
			v = value[:len(r3)]
			for x, p := range r3 {
				s3, s2, s1, s0 = s3+p*v[x], s2+r2c[x]*v[x], s1+r1c[x]*v[x], s0+r0c[x]*v[x]
			}
			v = value[m-2:][:3]
			s2 += r2[m-2] * v[0]
			s1 += r1[m-2]*v[0] + r1[m-1]*v[1]
			s0 += r0[m-2]*v[0] + r0[m-1]*v[1] + r0[m]*v[2]
		} else {
			at := last - m
			r0c, r1c, r2c := r0[3:][:len(r3)], r1[2:][:len(r3)], r2[1:][:len(r3)]
			v = value[at+3:][:len(r3)]
			for x, p := range r3 {
				s3, s2, s1, s0 = s3+p*v[x], s2+r2c[x]*v[x], s1+r1c[x]*v[x], s0+r0c[x]*v[x]
			}
			v = value[at:][:3]
			s2 += r2[0] * v[2]
			s1 += r1[0]*v[1] + r1[1]*v[2]
			s0 += r0[0]*v[0] + r0[1]*v[1] + r0[2]*v[2]
		}
		out[m], out[m-1], out[m-2], out[m-3] = s0, s1, s2, s3
	}
	for ; m >= 0; m-- {
		row, from := rowOf(triangle, m), 0
		if slid {
			from = last - m
		}
		out[m] = dot(row, value[from:])
	}
}
