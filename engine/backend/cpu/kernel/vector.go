package kernel

// Lanes is what the length of a vector is a multiple of. Sums over a vector keep Lanes partial sums, element i in
// number i mod Lanes, which are then added as a tree.
const Lanes = 16

// The functions below take vectors whose length is a multiple of Lanes, and not 0.

// SumSquares is the sum of x[i]^2.
func (l Level) SumSquares(x []float32) float32 {
	check(len(x), len(x))
	if l == Generic {
		return sumSquaresGeneric(x)
	}
	return sumSquaresAVX2(&x[0], len(x))
}

// Max is the largest of x.
func (l Level) Max(x []float32) float32 {
	check(len(x), len(x))
	if l == Generic {
		return maxGeneric(x)
	}
	return maxAVX2(&x[0], len(x))
}

// Exp replaces x[i] by exp(x[i] - top), 0 where that is below the smallest normal number, and returns the sum.
func (l Level) Exp(x []float32, top float32) float32 {
	check(len(x), len(x))
	switch l {
	case Generic:
		return expGeneric(x, top)
	case AVX512:
		return expAVX512(&x[0], len(x), top)
	}
	return expAVX2(&x[0], len(x), top)
}

// ExpSums returns the sums of e^z and of z e^z over z = x[i] - top: what an entropy takes.
func (l Level) ExpSums(x []float32, top float32) (sum, weighted float32) {
	check(len(x), len(x))
	switch l {
	case Generic:
		return expSumsGeneric(x, top)
	case AVX512:
		return expSumsAVX512(&x[0], len(x), top)
	}
	return expSumsAVX2(&x[0], len(x), top)
}

// SiLU replaces gate[i] by up[i] gate[i] / (1 + exp(-gate[i])).
func (l Level) SiLU(gate, up []float32) {
	check(len(gate), len(up))
	switch l {
	case Generic:
		siluGeneric(gate, up)
	case AVX2:
		siluAVX2(&gate[0], &up[0], len(gate))
	case AVX512:
		siluAVX512(&gate[0], &up[0], len(gate))
	}
}

// Mul stores x[i] scale w[i] in y.
func (l Level) Mul(y, x, w []float32, scale float32) {
	check(len(y), min(len(x), len(w)))
	if l == Generic {
		mulGeneric(y, x[:len(y)], w, scale)
		return
	}
	mulAVX2(&y[0], &x[0], &w[0], len(y), scale)
}

// Add adds x to y.
func (l Level) Add(y, x []float32) {
	check(len(y), len(x))
	if l == Generic {
		addGeneric(y, x[:len(y)])
		return
	}
	addAVX2(&y[0], &x[0], len(y))
}

// Read reads b, a multiple of 256 bytes, as fast as one core can, for measuring memory. What it returns has no meaning.
func (l Level) Read(b []byte) uint64 {
	check(len(b), len(b))
	if l == Generic {
		return readGeneric(b)
	}
	return readAVX2(&b[0], len(b))
}

// check panics unless n is a length that kernels take and other is at least that.
func check(n, other int) {
	if n == 0 || n%Lanes != 0 || other < n {
		panic("kernel: vector length")
	}
}
