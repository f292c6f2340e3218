package results

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// This file writes JSON's leaves into a buffer, byte for byte as encoding/json does without HTML escaping, and without
// its reflection: a line of requests.jsonl is written for every request of every run.

const hexDigits = "0123456789abcdef"

// appendString appends s quoted. Bytes that are not UTF-8 become U+FFFD, as everywhere in JSON.
func appendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		var escape string
		if c >= utf8.RuneSelf {
			var r rune
			switch r, size = utf8.DecodeRuneInString(s[i:]); {
			case r == utf8.RuneError && size == 1:
				escape = `\ufffd`
			case r == '\u2028':
				escape = `\u2028`
			case r == '\u2029':
				escape = `\u2029`
			default:
				i += size
				continue
			}
		}
		buf = append(buf, s[start:i]...)
		if escape != "" {
			buf = append(buf, escape...)
		} else {
			buf = appendEscape(buf, c)
		}
		i += size
		start = i
	}
	buf = append(buf, s[start:]...)
	return append(buf, '"')
}

// appendEscape appends the escape of a quote, a backslash or a control character.
func appendEscape(buf []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(buf, '\\', c)
	case '\b':
		return append(buf, `\b`...)
	case '\f':
		return append(buf, `\f`...)
	case '\n':
		return append(buf, `\n`...)
	case '\r':
		return append(buf, `\r`...)
	case '\t':
		return append(buf, `\t`...)
	}
	return append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendFloat appends the shortest decimal that reads back as x, which must be finite.
func appendFloat(buf []byte, x float64) []byte {
	abs := math.Abs(x)
	if abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(buf, x, 'f', -1, 64)
	}
	buf = strconv.AppendFloat(buf, x, 'e', -1, 64)
	if n := len(buf); n >= 4 && buf[n-4] == 'e' && buf[n-3] == '-' && buf[n-2] == '0' {
		buf[n-2] = buf[n-1] // e-09 is written e-9
		buf = buf[:n-1]
	}
	return buf
}

// appendNullable appends f's number or null.
func appendNullable(buf []byte, f Float) []byte {
	if !f.ok {
		return append(buf, "null"...)
	}
	return appendFloat(buf, f.x)
}

// exactNanos bounds the spans whose decimal in milliseconds has at most 15 significant digits. Two such decimals are
// never the same float64, so that the decimal of d/1e6, less trailing zeros, is what appendFloat would find.
const exactNanos = 1e15

// appendMillis appends d in milliseconds: appendFloat(buf, Millis(d)), some four times faster.
func appendMillis(buf []byte, d time.Duration) []byte {
	if d < 0 || d >= exactNanos {
		return appendFloat(buf, Millis(d))
	}
	buf = strconv.AppendInt(buf, int64(d/1e6), 10)
	fraction := int(d % 1e6)
	if fraction == 0 {
		return buf
	}
	digits := [...]byte{'.', '0', '0', '0', '0', '0', '0'}
	end := 0
	for i := 6; i > 0; i-- {
		digit := byte(fraction % 10)
		fraction /= 10
		digits[i] += digit
		if end == 0 && digit != 0 {
			end = i + 1
		}
	}
	return append(buf, digits[:end]...)
}
