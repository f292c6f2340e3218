package results

import (
	"bytes"
	"encoding/json"
	"math"
)

// Float is a number or nothing. The zero value is nothing, and so are NaN and the infinities: all are null in JSON.
type Float struct {
	x  float64
	ok bool
}

// F returns x as a Float; NaN and the infinities give nothing.
func F(x float64) Float {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Float{}
	}
	return Float{x, true}
}

// Ratio returns a / b, or nothing where b is 0 or either is nothing.
func Ratio(a, b Float) Float {
	if !a.ok || !b.ok || b.x == 0 {
		return Float{}
	}
	return F(a.x / b.x)
}

// Change returns a / b - 1, the fraction by which a differs from b; nothing where Ratio gives nothing.
func Change(a, b Float) Float {
	if r := Ratio(a, b); r.ok {
		return F((a.x - b.x) / b.x)
	}
	return Float{}
}

// Get returns the number; false where there is none.
func (f Float) Get() (float64, bool) { return f.x, f.ok }

// Or returns the number, or other where there is none.
func (f Float) Or(other float64) float64 {
	if f.ok {
		return f.x
	}
	return other
}

// IsNull says that there is no number.
func (f Float) IsNull() bool { return !f.ok }

// MarshalJSON writes the shortest decimal that reads back as the same float64, or null.
func (f Float) MarshalJSON() ([]byte, error) { return appendNullable(nil, f), nil }

// UnmarshalJSON reads a number or null.
func (f *Float) UnmarshalJSON(data []byte) error {
	*f = Float{}
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	var x float64
	if err := json.Unmarshal(data, &x); err != nil {
		return err
	}
	*f = F(x)
	return nil
}
