package weights

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParseFileErrors: each rule of the format, broken.
func TestParseFileErrors(t *testing.T) {
	tensor := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"dtype":%s,"shape":%s,"data_offsets":%s}`, dtype, shape, offsets)
	}
	ok := tensor(`"F32"`, `[2]`, `[0,8]`)
	for _, c := range []struct {
		header string
		data   int
		want   string
	}{
		{``, 0, "no JSON object"},
		{`[]`, 0, "no JSON object"},
		{` {}`, 0, "no JSON object"},
		{`{`, 0, "unexpected end"},
		{`{} {}`, 0, "after top-level value"},
		{`{"a":` + ok + `,"a":` + ok + `}`, 8, `tensor "a": named twice`},
		{`{"a":1}`, 0, `tensor "a": is 1, wanted {`},
		{`{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8, "dtype is missing"},
		{`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, 8, "shape is missing"},
		{`{"a":{"dtype":"F32","shape":[2]}}`, 8, "data_offsets is missing"},
		{`{"a":{"DTYPE":"F32","shape":[2],"data_offsets":[0,8]}}`, 8, `unknown key "DTYPE"`},
		{`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8, `"dtype": given twice`},
		{`{"a":` + tensor(`"F33"`, `[2]`, `[0,8]`) + `}`, 8, `dtype: unknown "F33"`},
		{`{"a":` + tensor(`null`, `[2]`, `[0,8]`) + `}`, 8, `dtype: is null, wanted a string`},
		{`{"a":` + tensor(`"F32"`, `[-2]`, `[0,8]`) + `}`, 8, `shape: item 0 is -2`},
		{`{"a":` + tensor(`"F32"`, `[2.0]`, `[0,8]`) + `}`, 8, `shape: item 0 is 2.0`},
		{`{"a":` + tensor(`"F32"`, `[2,"x"]`, `[0,8]`) + `}`, 8, `shape: item 1 is "x"`},
		{`{"a":` + tensor(`"F32"`, `2`, `[0,8]`) + `}`, 8, `shape: is 2, wanted [`},
		{`{"a":` + tensor(`"F32"`, `[4294967296,4294967296]`, `[0,8]`) + `}`, 8, "more than an int64 counts"},
		{`{"a":` + tensor(`"F32"`, `[99999999999999999999]`, `[0,8]`) + `}`, 8, `item 0 is 99999999999999999999`},
		{`{"a":` + tensor(`"F32"`, `[2]`, `[0,8,8]`) + `}`, 8, "wanted begin and end"},
		{`{"a":` + tensor(`"F32"`, `[2]`, `[8,0]`) + `}`, 8, "wanted begin and end, in order"},
		{`{"a":` + tensor(`"F32"`, `[3]`, `[0,8]`) + `}`, 8, "0 to 8 is 8 bytes, but F32 of shape [3] takes 12"},
		{`{"a":` + ok + `}`, 7, "ends at byte 8 of the data, which is 7 bytes: truncated"},
		{`{"a":` + ok + `}`, 9, "9 bytes of data, but the tensors end at 8"},
		{`{"a":` + ok + `,"b":` + tensor(`"U8"`, `[4]`, `[6,10]`) + `}`, 10, `tensor "b": bytes 6 to 10 overlap tensor "a"`},
		{`{"a":` + ok + `,"b":` + tensor(`"U8"`, `[4]`, `[10,14]`) + `}`, 14,
			`tensor "b": begins at byte 10 of the data, wanted 8`},
	} {
		_, _, err := parseFile(file8(c.header, make([]byte, c.data)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.header, err, c.want)
		}
	}
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	if _, _, err := parseFile(append(long, "{}"...)); err == nil || !strings.Contains(err.Error(), "1099511627776 bytes") {
		t.Errorf("a header of 1 TiB: %v", err)
	}
}

// TestParseFile: scalars, empty tensors and types that are no weight's are valid.
func TestParseFile(t *testing.T) {
	entries, data, err := parseFile(safetensors(
		stored{"scalar", "F32", nil, make([]byte, 4)},
		stored{"none", "BF16", []int{3, 0, 5}, nil},
		stored{"flags", "BOOL", []int{3}, make([]byte, 3)},
	))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 || len(data) != 7 || entries[1].name != "none" {
		t.Errorf("%d bytes, entries %v", len(data), entries)
	}
	if entries, _, err := parseFile(file8("{}", nil)); err != nil || len(entries) != 0 {
		t.Errorf("an empty file: %v, %v", entries, err)
	}
}

// checkEntries states what parseFile promises of any file that it accepts.
func checkEntries(t interface{ Fatalf(string, ...any) }, file []byte, entries []entry, data []byte) {
	if len(data) > len(file)-8 {
		t.Fatalf("%d bytes of data in a file of %d", len(data), len(file))
	}
	at, names := int64(0), make(map[string]bool)
	for _, e := range entries {
		if names[e.name] {
			t.Fatalf("%q twice", e.name)
		}
		names[e.name] = true
		if e.begin != at {
			t.Fatalf("%q begins at %d, the one before ends at %d", e.name, e.begin, at)
		}
		at = e.end
		size := storedSize(e.dtype)
		for _, d := range e.shape {
			size *= int64(d)
		}
		if e.end-e.begin != size {
			t.Fatalf("%q: %d bytes for %s %v", e.name, e.end-e.begin, e.dtype, e.shape)
		}
	}
	if at != int64(len(data)) {
		t.Fatalf("tensors end at %d of %d", at, len(data))
	}
}

// TestRoundTrip: any list of tensors comes back as it was written, and a changed byte is never worse than an error.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tensors []stored
		for i := range rapid.IntRange(0, 6).Draw(t, "tensors") {
			s := stored{name: fmt.Sprint(rapid.StringN(0, 5, -1).Draw(t, "name"), i)}
			s.dtype = rapid.SampledFrom([]string{"U8", "F16", "BF16", "F32", "I64"}).Draw(t, "dtype")
			size := int(storedSize(s.dtype))
			for range rapid.IntRange(0, 3).Draw(t, "rank") {
				d := rapid.IntRange(0, 4).Draw(t, "dimension")
				s.shape = append(s.shape, d)
				size *= d
			}
			s.data = rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
			tensors = append(tensors, s)
		}
		file := safetensors(tensors...)
		entries, data, err := parseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkEntries(t, file, entries, data)
		got := make(map[string]string)
		for _, e := range entries {
			got[e.name] = fmt.Sprint(e.dtype, e.shape, data[e.begin:e.end])
		}
		for _, s := range tensors {
			if want := fmt.Sprint(s.dtype, s.shape, s.data); got[s.name] != want {
				t.Fatalf("%q: %s, want %s", s.name, got[s.name], want)
			}
		}
		at := rapid.IntRange(0, len(file)-1).Draw(t, "at")
		file[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if entries, data, err := parseFile(file); err == nil {
			checkEntries(t, file, entries, data)
		}
	})
}

func FuzzParseFile(f *testing.F) {
	f.Add(safetensors(tiny.tensors()...))
	f.Add(safetensors(stored{"x", "F32", nil, make([]byte, 4)}, stored{"y", "U8", []int{0}, nil}))
	f.Add(file8("{}", nil))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, '{', '}'})
	f.Fuzz(func(t *testing.T, file []byte) {
		if entries, data, err := parseFile(file); err == nil {
			checkEntries(t, file, entries, data)
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"model-1.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../x"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		index, err := parseIndex(text)
		if err != nil {
			return
		}
		for name, shard := range index {
			if shard == "" || strings.ContainsAny(shard, `/\`) || shard == ".." || shard == "." {
				t.Fatalf("%q is in %q", name, shard)
			}
		}
	})
}
