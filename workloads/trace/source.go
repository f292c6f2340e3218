package trace

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// source hands a file's bytes on once they are known to be UTF-8, less a byte order mark, and says on which line an
// offset lies. encoding/json would put U+FFFD in the place of a bad byte and say nothing.
type source struct {
	r     io.Reader
	buf   [32 << 10]byte
	ready []byte // checked, not yet handed on; lies in buf
	part  []byte // the start of a rune whose end isn't read yet: at most 3 bytes
	began bool
	err   error // what Read returns once ready is empty

	read  int64   // bytes checked so far
	lines int     // line feeds among them
	track bool    // keep line feeds for lineAt
	feeds []int64 // their offsets, those before passed dropped
	gone  int     // line feeds dropped
}

func newSource(r io.Reader) *source { return &source{r: r, track: true} }

// untrack forgets line feeds: the caller counts its lines itself.
func (s *source) untrack() { s.track, s.feeds = false, nil }

// Read implements io.Reader. A byte that isn't UTF-8 is a *DataError with its line, behind the bytes before it.
func (s *source) Read(p []byte) (int, error) {
	for idle := 0; len(s.ready) == 0; idle++ {
		switch {
		case s.err != nil:
			return 0, s.err
		case idle == 100: // as bufio.Reader: a reader that gives neither bytes nor an error is broken
			return 0, io.ErrNoProgress
		}
		s.fill()
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// fill reads the next bytes behind the unfinished rune and checks them.
func (s *source) fill() {
	n, err := s.readMore()
	data := s.buf[:len(s.part)+n]
	s.part = s.part[:0]
	if !s.began {
		s.began = true
		if msg := wrongKind(data); msg != "" {
			s.err = &DataError{Msg: msg, lost: true}
			return
		}
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	good, bad := checked(data, errors.Is(err, io.EOF))
	s.take(data[:good])
	s.ready = data[:good]
	switch {
	case bad:
		s.err = &DataError{
			Line: s.lines + 1, Msg: "found the byte " + hexByte(data[good]) + ", wanted text in UTF-8", lost: true,
		}
	case errors.Is(err, io.EOF):
		s.err = io.EOF
	case err != nil:
		s.err = &DataError{Line: s.lines + 1, Msg: "can't be read: " + err.Error(), Err: err, lost: true}
	default:
		s.part = append(s.part, data[good:]...)
	}
}

// readMore puts the unfinished rune at the front of the buffer and reads behind it: at first enough to see what kind of
// file this is, later whatever the reader gives.
func (s *source) readMore() (int, error) {
	if s.began {
		return s.r.Read(s.buf[copy(s.buf[:], s.part):])
	}
	n, err := io.ReadAtLeast(s.r, s.buf[:], 4)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// take counts the lines of checked bytes.
func (s *source) take(b []byte) {
	if s.track {
		for i := 0; ; i++ {
			j := bytes.IndexByte(b[i:], '\n')
			if j < 0 {
				break
			}
			i += j
			s.feeds = append(s.feeds, s.read+int64(i))
		}
	}
	s.lines += bytes.Count(b, []byte{'\n'})
	s.read += int64(len(b))
}

// lineAt is the 1-based line of an offset, counted in handed-on bytes. Offsets must not fall: line feeds before one are
// forgotten, so that a file of many lines costs no memory.
func (s *source) lineAt(off int64) int {
	n := 0
	for n < len(s.feeds) && s.feeds[n] < off {
		n++
	}
	s.gone += n
	s.feeds = append(s.feeds[:0], s.feeds[n:]...)
	return s.gone + 1
}

// checked is how many leading bytes are whole UTF-8 runes, and whether what follows them can't become one.
func checked(data []byte, last bool) (good int, bad bool) {
	if utf8.Valid(data) {
		return len(data), false
	}
	for good < len(data) {
		r, size := utf8.DecodeRune(data[good:])
		if r == utf8.RuneError && size == 1 {
			return good, last || utf8.FullRune(data[good:])
		}
		good += size
	}
	return good, false
}

// wrongKind recognises files that hold a dataset in another wrapping, by their first bytes.
func wrongKind(head []byte) string {
	for _, k := range []struct{ magic, msg string }{
		{"\x1f\x8b", "found a gzip file, wanted plain text: decompress it first"},
		{"\x28\xb5\x2f\xfd", "found a zstd file, wanted plain text: decompress it first"},
		{"PK\x03\x04", "found a zip file, wanted plain text: unpack it first"},
		{"PAR1", "found a Parquet file, wanted JSON, JSON lines or CSV: export it first"},
		{"\xff\xfe", "found text in UTF-16, wanted UTF-8"},
		{"\xfe\xff", "found text in UTF-16, wanted UTF-8"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.msg
		}
	}
	return ""
}

func hexByte(b byte) string {
	const digits = "0123456789abcdef"
	return "0x" + string([]byte{digits[b>>4], digits[b&15]})
}
