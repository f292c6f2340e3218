package weights

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"
)

// Tensor is a view of one stored tensor. Data lies in the mapped file: it is read-only, and gone once the model is
// closed.
//
// Invariant: len(Data) == DType.Size() * product(Shape), Data is aligned to its values and in the machine's byte order.
type Tensor struct {
	Name  string // as in the file; empty for a tensor that the architecture does not have
	DType DType
	Shape []int // row-major; a projection is [outputs, inputs]
	Data  []byte
}

// Present says that the model has this tensor: a bias or a query norm may be absent.
func (t *Tensor) Present() bool { return t.Name != "" }

// Len is the number of values.
func (t *Tensor) Len() int {
	if !t.Present() {
		return 0
	}
	return len(t.Data) / t.DType.Size()
}

// Rows is the first dimension of a matrix; a vector is one row.
func (t *Tensor) Rows() int {
	if len(t.Shape) < 2 {
		return min(1, t.Len())
	}
	return t.Shape[0]
}

// Cols is the number of values in a row.
func (t *Tensor) Cols() int {
	if len(t.Shape) == 0 {
		return t.Len()
	}
	return t.Shape[len(t.Shape)-1]
}

// F32 is the tensor as float32 without a copy; nil unless it is stored as F32. Writing to it faults.
func (t *Tensor) F32() []float32 {
	if t.DType != F32 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data)/4)
}

// Halves is the bits of a tensor stored as F16 or BF16, without a copy; nil for F32. Writing to it faults.
func (t *Tensor) Halves() []uint16 {
	if t.DType != F16 && t.DType != BF16 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data)/2)
}

// Row widens row i into dst, which holds at least Cols values, and returns the part it filled.
func (t *Tensor) Row(dst []float32, i int) []float32 {
	cols := t.Cols()
	dst = dst[:cols]
	t.widen(dst, i*cols)
	return dst
}

// Float32 is all values as float32: the view where they are stored so, else a widened copy. Treat it as read-only.
func (t *Tensor) Float32() []float32 {
	if !t.Present() {
		return nil
	}
	if t.DType == F32 {
		return t.F32()
	}
	all := make([]float32, t.Len())
	t.widen(all, 0)
	return all
}

// widen fills dst with the values from index first on.
func (t *Tensor) widen(dst []float32, first int) {
	switch t.DType {
	case F32:
		copy(dst, t.F32()[first:first+len(dst)])
	case BF16:
		for i, v := range t.Halves()[first : first+len(dst)] {
			dst[i] = BF16ToFloat32(v)
		}
	case F16:
		for i, v := range t.Halves()[first : first+len(dst)] {
			dst[i] = F16ToFloat32(v)
		}
	default:
		panic(fmt.Sprintf("weights: tensor %q has no values", t.Name))
	}
}

// nativeOrder says that the machine stores numbers as a safetensors file does: least significant byte first.
var nativeOrder = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// view gives data the alignment and byte order that Tensor promises. Files that the usual writers make are aligned, and
// nearly all machines little-endian: then nothing is copied.
func view(data []byte, size int) []byte {
	aligned := uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(size) == 0
	if nativeOrder && (aligned || len(data) == 0) {
		return data
	}
	words := make([]uint64, (len(data)+7)/8) // a slice of bytes alone need not be aligned
	fresh := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(data))
	copy(fresh, data)
	if !nativeOrder {
		for value := range slices.Chunk(fresh, size) {
			slices.Reverse(value)
		}
	}
	return fresh
}
