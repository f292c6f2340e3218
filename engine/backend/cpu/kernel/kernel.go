// Package kernel is the arithmetic of a forward pass on the CPU: products of packed matrices with a few rows, and the
// element-wise functions between them, in Go assembly for AVX-512 and for AVX2 with FMA, and in plain Go for every
// other machine. It knows no model, starts no goroutine and allocates nothing but matrices.
//
// One order of additions holds for every product, whatever the number of rows, so that a row never depends on its
// neighbours: a sum goes over the inputs in sequence, one fused multiply-add each, in runs of Run inputs that are
// added up in sequence. Vector lanes are different outputs, never parts of one sum. So a product may be cut into any
// ranges of rows and outputs, and AVX2 and AVX-512 give the same bits. Plain Go rounds each product before it is
// added; its last bits differ.
//
// Read level.go (which instructions), then matrix.go (the packed layout), panel.go (products) and vector.go (the rest).
package kernel
