package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// maxHeader is the longest header, bytes, that the format's own implementation accepts; a model of 1,000 tensors takes
// about 100 kB.
const maxHeader = 100_000_000

// entry is one tensor as a safetensors header describes it.
type entry struct {
	name       string
	dtype      string
	shape      []int
	begin, end int64 // bytes from the end of the header
}

// parseFile checks a safetensors file whole and returns its tensors, sorted by place, and the bytes that hold them.
// The file is a length (8 bytes, least significant first), a JSON object of that length, and the data:
//
//	{"NAME": {"dtype": "BF16", "shape": [64, 16], "data_offsets": [0, 2048]}, …, "__metadata__": {…}}
//
// As the format demands, the tensors cover the data exactly: none overlaps another, and no byte is left over.
func parseFile(file []byte) (entries []entry, data []byte, err error) {
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("%d bytes, wanted at least 8 for the header's length", len(file))
	}
	length, rest := binary.LittleEndian.Uint64(file), file[8:]
	if length > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("header is %d bytes by its length field, but %d follow: truncated, or no "+
			"safetensors file", length, len(rest))
	}
	if length > maxHeader {
		return nil, nil, fmt.Errorf("header is %d bytes, wanted at most %d", length, maxHeader)
	}
	header, data := rest[:length], rest[length:]
	entries, err = parseHeader(header)
	if err != nil {
		return nil, nil, err
	}
	return entries, data, checkPlaces(entries, int64(len(data)))
}

// checkPlaces sorts entries by place and checks that they tile size bytes of data.
func checkPlaces(entries []entry, size int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	var covered int64
	for i, e := range entries {
		if e.end > size {
			return fmt.Errorf("tensor %s: ends at byte %d of the data, which is %d bytes: truncated",
				clip(e.name), e.end, size)
		}
		if e.begin < covered {
			return fmt.Errorf("tensor %s: bytes %d to %d overlap tensor %s, which ends at %d",
				clip(e.name), e.begin, e.end, clip(entries[i-1].name), covered)
		}
		if e.begin > covered {
			return fmt.Errorf("tensor %s: begins at byte %d of the data, wanted %d: the bytes between belong to no tensor",
				clip(e.name), e.begin, covered)
		}
		covered = e.end
	}
	if covered != size {
		return fmt.Errorf("%d bytes of data, but the tensors end at %d", size, covered)
	}
	return nil
}

// parseHeader reads the JSON object. It walks the tokens itself, because encoding/json takes the last of two equal keys
// and folds their case, where a file that says a thing twice is broken.
func parseHeader(header []byte) ([]entry, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, fmt.Errorf("header is no JSON object")
	}
	var whole struct{}
	if err := json.Unmarshal(header, &whole); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	w := newWalker(header)
	var entries []entry
	names := make(map[string]bool)
	err := w.object(func(name string) error {
		if names[name] {
			return fmt.Errorf("tensor %s: named twice", clip(name))
		}
		names[name] = true
		if name == "__metadata__" {
			return w.skip()
		}
		e, err := parseEntry(w)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", clip(name), err)
		}
		e.name = name
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return entries, nil
}

// parseEntry reads one tensor's description and checks it in itself.
func parseEntry(w *walker) (entry, error) {
	var e entry
	var offsets []int64
	seen := make(map[string]bool, 3)
	err := w.object(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s: given twice", clip(key))
		}
		seen[key] = true
		switch key {
		case "dtype":
			e.dtype, err = w.text()
		case "shape":
			var dims []int64
			dims, err = w.integers()
			for _, d := range dims {
				if d > math.MaxInt {
					return fmt.Errorf("shape: %d is beyond this machine's integers", d)
				}
				e.shape = append(e.shape, int(d))
			}
		case "data_offsets":
			offsets, err = w.integers()
		default:
			return fmt.Errorf("unknown key %s, wanted dtype, shape, data_offsets", clip(key))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return entry{}, err
	}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[key] {
			return entry{}, fmt.Errorf("%s is missing", key)
		}
	}
	if len(offsets) != 2 || offsets[0] > offsets[1] {
		return entry{}, fmt.Errorf("data_offsets: is %v, wanted begin and end, in order", short(offsets))
	}
	e.begin, e.end = offsets[0], offsets[1]
	size := storedSize(e.dtype)
	if size == 0 {
		return entry{}, fmt.Errorf("dtype: unknown %s", clip(e.dtype))
	}
	for _, d := range e.shape {
		if d > 0 && size > math.MaxInt64/int64(d) {
			return entry{}, fmt.Errorf("shape: %v is more than an int64 counts", short(e.shape))
		}
		size *= int64(d)
	}
	if e.end-e.begin != size {
		return entry{}, fmt.Errorf("data_offsets: %d to %d is %d bytes, but %s of shape %v takes %d",
			e.begin, e.end, e.end-e.begin, e.dtype, short(e.shape), size)
	}
	return e, nil
}

// walker reads well-formed JSON token by token.
type walker struct{ dec *json.Decoder }

func newWalker(text []byte) *walker {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return &walker{dec}
}

// object reads an object and calls member after each key; member reads the value.
func (w *walker) object(member func(key string) error) error {
	if err := w.open('{'); err != nil {
		return err
	}
	for w.dec.More() {
		key, err := w.text()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// open reads an opening delimiter.
func (w *walker) open(want json.Delim) error {
	t, err := w.dec.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("is %s, wanted %s", found(t), want)
	}
	return nil
}

func (w *walker) text() (string, error) {
	t, err := w.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("is %s, wanted a string", found(t))
	}
	return s, nil
}

// integers reads a list of integers >= 0.
func (w *walker) integers() ([]int64, error) {
	if err := w.open('['); err != nil {
		return nil, err
	}
	list := []int64{}
	for w.dec.More() {
		t, err := w.dec.Token()
		if err != nil {
			return nil, err
		}
		number, _ := t.(json.Number)
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("item %d is %s, wanted an integer from 0 to %d", len(list), found(t), int64(math.MaxInt64))
		}
		list = append(list, n)
	}
	_, err := w.dec.Token()
	return list, err
}

// skip reads one value, whatever it is.
func (w *walker) skip() error {
	var value json.RawMessage
	return w.dec.Decode(&value)
}

// found describes a token in an error.
func found(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return clip(t)
	case json.Number:
		return string(t[:min(len(t), 40)])
	}
	return fmt.Sprint(t)
}

// clip quotes a name from a file, cut to a length that an error can hold.
func clip(name string) string {
	const most = 120
	if len(name) <= most {
		return strconv.Quote(name)
	}
	return strconv.Quote(name[:most]) + "…"
}

// short cuts a list from a file to what an error can hold.
func short[T any](list []T) []T { return list[:min(len(list), 8)] }
