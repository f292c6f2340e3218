package weights

import (
	"fmt"
	"math"
)

// DType is the type in which a weight is stored.
type DType uint8

// The stored types of weights.
const (
	F32 DType = iota + 1
	F16
	BF16
)

// Size is the bytes of one value.
func (d DType) Size() int {
	switch d {
	case F32:
		return 4
	case F16, BF16:
		return 2
	}
	panic(fmt.Sprintf("weights: DType(%d) has no size", uint8(d)))
}

// String is the spelling of a safetensors header.
func (d DType) String() string {
	switch d {
	case F32:
		return "F32"
	case F16:
		return "F16"
	case BF16:
		return "BF16"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// storedSize is the bytes of one value of any type that a safetensors header may name; 0 for an unknown one. Types that
// are no weight's are known here so that a file which also holds such a tensor can be checked whole.
func storedSize(dtype string) int64 {
	switch dtype {
	case "BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0":
		return 1
	case "U16", "I16", "F16", "BF16":
		return 2
	case "U32", "I32", "F32":
		return 4
	case "U64", "I64", "F64", "C64":
		return 8
	}
	return 0
}

// weightType is the DType of a header's spelling; ok is false where weights are not stored so.
func weightType(dtype string) (d DType, ok bool) {
	switch dtype {
	case "F32":
		return F32, true
	case "F16":
		return F16, true
	case "BF16":
		return BF16, true
	}
	return 0, false
}

// BF16ToFloat32 widens a bfloat16, exactly: it is the upper half of a float32.
func BF16ToFloat32(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }

// F16ToFloat32 widens an IEEE 754 half, exactly: subnormals, infinities and NaN payloads included.
func F16ToFloat32(v uint16) float32 {
	sign, exponent, fraction := uint32(v>>15)<<31, uint32(v>>10)&0x1f, uint32(v)&0x3ff
	switch exponent {
	case 0: // zero or subnormal: fraction units of 2^-24, which a float32 holds as a normal number
		magnitude := float32(fraction) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(magnitude))
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
