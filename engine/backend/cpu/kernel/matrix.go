package kernel

import (
	"fmt"
	"unsafe"
)

const (
	// Unit is the granularity of a matrix's outputs: a product may be cut at multiples of it. It is what a 64-byte line
	// of bfloat16 weights holds.
	Unit = 32
	// panel is the number of outputs that lie side by side in memory: four 512-bit registers.
	panel = 64
	// align is what the first weight is aligned to: a cache line.
	align = 64
)

// DType is how a matrix stores its weights.
type DType uint8

// The stored types. Products are in float32 for both: widening a bfloat16 is exact.
const (
	F32 DType = iota
	BF16
)

// Size is the bytes of one weight.
func (d DType) Size() int {
	if d == BF16 {
		return 2
	}
	return 4
}

// Matrix is a weight matrix packed for products. Its outputs are cut into panels of 64 (the last may have 32): within a
// panel, the weights of all its outputs for input 0 come first, then those for input 1. So a product reads a panel from
// end to end, and needs no sum across lanes.
//
// A float32 line has outputs in order; a bfloat16 line of 32 outputs has output j in the lower and output 16+j in the
// upper half of word j, so that one shift and one mask widen it.
type Matrix struct {
	outputs, inputs int
	f32             []float32 // one of the two, by type
	bf16            []uint16
}

// Outputs is the number of outputs, rounded up to a multiple of Unit.
func (m *Matrix) Outputs() int { return m.outputs }

// Inputs is the number of inputs.
func (m *Matrix) Inputs() int { return m.inputs }

// DType is how the weights are stored.
func (m *Matrix) DType() DType {
	if m.bf16 != nil {
		return BF16
	}
	return F32
}

// Bytes is the memory that a product reads.
func (m *Matrix) Bytes() int { return m.outputs * m.inputs * m.DType().Size() }

// Pad is n rounded up to a multiple of unit.
func Pad(n, unit int) int { return (n + unit - 1) / unit * unit }

// NewMatrix returns a matrix of zeros. outputs is rounded up to a multiple of Unit.
func NewMatrix(outputs, inputs int, d DType) *Matrix {
	if outputs < 1 || inputs < 1 {
		panic(fmt.Sprintf("kernel: matrix of %d outputs, %d inputs", outputs, inputs))
	}
	m := &Matrix{outputs: Pad(outputs, Unit), inputs: inputs}
	if d == BF16 {
		m.bf16 = aligned[uint16](m.outputs * inputs)
	} else {
		m.f32 = aligned[float32](m.outputs * inputs)
	}
	return m
}

// aligned is make, at the start of a cache line; large ones ask for large pages, so that streaming them takes fewer
// page-table walks.
func aligned[T float32 | uint16 | byte](n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	all := make([]T, n+align/size)
	skip := 0
	if over := int(uintptr(unsafe.Pointer(unsafe.SliceData(all))) % align); over > 0 {
		skip = (align - over) / size
	}
	all = all[skip : skip+n : skip+n]
	hugePages(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(all))), n*size))
	return all
}

// Bytes returns n bytes of memory as matrices have it, all of it written once: reading memory that was never written
// may read one page of zeros again and again.
func Bytes(n int) []byte {
	b := aligned[byte](n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// SetF32 stores rows, a whole number of them in row-major order, as the weights of outputs first and following. The
// matrix holds float32.
func (m *Matrix) SetF32(first int, rows []float32) {
	pack(m, m.f32, first, rows, func(i int) int { return i })
}

// SetBF16 stores rows, the bits of bfloat16 weights, as SetF32 does. The matrix holds bfloat16.
func (m *Matrix) SetBF16(first int, rows []uint16) { pack(m, m.bf16, first, rows, place) }

// place is where output i of a bfloat16 panel lies within its lines.
func place(i int) int { return i&^31 | i&15<<1 | i>>4&1 }

// pack writes rows into their panels, sixteen outputs at a time so that both sides are read and written in order. place
// is where output i of a panel lies within its lines.
func pack[T float32 | uint16](m *Matrix, to []T, first int, rows []T, place func(i int) int) {
	n := len(rows) / m.inputs
	if len(rows)%m.inputs != 0 || first < 0 || first+n > m.outputs || to == nil {
		panic(fmt.Sprintf("kernel: %d weights at output %d of a matrix [%d, %d]", len(rows), first, m.outputs, m.inputs))
	}
	for lo := 0; lo < n; {
		o := first + lo
		hi := min(n, lo+16-o%16)
		base, width := m.at(o)
		var offset [16]int
		for i := range hi - lo {
			offset[i] = base + place(o%panel+i)
		}
		for k := range m.inputs {
			for i, at := range offset[:hi-lo] {
				to[at+k*width] = rows[(lo+i)*m.inputs+k]
			}
		}
		lo = hi
	}
}

// at is where the panel of output o begins, and how many outputs it has.
func (m *Matrix) at(o int) (base, width int) {
	p := o / panel * panel
	return p * m.inputs, min(panel, m.outputs-p)
}

// Row stores the weights of output o in to, which has one value for each input.
func (m *Matrix) Row(to []float32, o int) {
	base, width := m.at(o)
	if m.bf16 != nil {
		base += place(o % panel)
		for k := range to {
			to[k] = widen(m.bf16[base+k*width])
		}
		return
	}
	base += o % panel
	for k := range to {
		to[k] = m.f32[base+k*width]
	}
}
