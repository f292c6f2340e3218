package trace

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// chunked gives its bytes in pieces of the given sizes, over and over.
type chunked struct {
	data  []byte
	sizes []int
	i     int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := min(c.sizes[c.i%len(c.sizes)], len(c.data), len(p))
	c.i++
	copy(p, c.data[:n])
	c.data = c.data[n:]
	return n, nil
}

// However the bytes come, source hands on the longest valid prefix, and an error with its line if that isn't all.
func TestSourceAgainstUTF8(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(
			rapid.Just([]byte("\n")), rapid.Just([]byte("a€😀")), rapid.Just([]byte("\xef\xbb\xbf")),
			rapid.SliceOfN(rapid.Byte(), 0, 3), rapid.Just([]byte(strings.Repeat("é", 20<<10))),
		)
		data := bytes.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), nil)
		if wrongKind(data) != "" {
			t.Skip("another kind of file")
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40_000), 1, 5).Draw(t, "sizes")
		want := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		good := 0
		for good < len(want) {
			r, size := utf8.DecodeRune(want[good:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			good += size
		}
		got, err := io.ReadAll(newSource(&chunked{data: data, sizes: sizes}))
		if !bytes.Equal(got, want[:good]) {
			t.Fatalf("handed on %d bytes, want the first %d", len(got), good)
		}
		var e *DataError
		switch {
		case good == len(want) && err != nil:
			t.Fatalf("valid text: %v", err)
		case good < len(want) && !errors.As(err, &e):
			t.Fatalf("bad byte at %d: error %v", good, err)
		case good < len(want) && e.Line != 1+bytes.Count(want[:good], []byte("\n")):
			t.Fatalf("bad byte at %d: %v", good, err)
		}
	})
}

func TestSourceLines(t *testing.T) {
	text := "a\nbb\n\nccc\n"
	src := newSource(iotest.OneByteReader(strings.NewReader(text)))
	if _, err := io.ReadAll(src); err != nil {
		t.Fatal(err)
	}
	for off := range len(text) + 1 {
		if got, want := src.lineAt(int64(off)), 1+strings.Count(text[:off], "\n"); got != want {
			t.Errorf("line at offset %d: %d, want %d", off, got, want)
		}
	}
	if len(src.feeds) != 0 {
		t.Errorf("%d line feeds kept behind the last offset", len(src.feeds))
	}
}

func TestSourceReadError(t *testing.T) {
	broken := errors.New("device gone")
	text := strings.NewReader("prompt_tokens,output_tokens\n1,2\n")
	_, err := Read(io.MultiReader(text, iotest.ErrReader(broken)), "f", Options{})
	var e *DataError
	if !errors.As(err, &e) || !errors.Is(err, broken) {
		t.Fatalf("error %v, want a DataError around %v", err, broken)
	}
	if want := `f: line 3: entry 2: can't be read: device gone`; err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
}
