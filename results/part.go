package results

import (
	"errors"
	"fmt"
	"os"
)

// partBuffer is how many bytes a part holds back at most, whatever FlushEvery says.
const partBuffer = 1 << 16

// Part appends the requests of one point to its file as they end. It is not safe for use by several goroutines.
type Part struct {
	file  *os.File
	label *Label
	buf   []byte
	lines int // in buf
	every int
	bad   error // the first error; after it nothing more is written, so that no line is torn in the middle
}

// Write appends r. The error is that of this or an earlier write.
func (p *Part) Write(r *Request) error {
	if p.bad != nil {
		return p.bad
	}
	p.buf = AppendJSON(p.buf, p.label, r)
	if p.lines++; p.lines < p.every && len(p.buf) < partBuffer {
		return nil
	}
	return p.Flush()
}

// Flush hands all lines to the operating system: from here on a kill of the process doesn't lose them.
func (p *Part) Flush() error {
	if p.bad != nil || len(p.buf) == 0 {
		return p.bad
	}
	if _, err := p.file.Write(p.buf); err != nil {
		p.bad = fmt.Errorf("point %d: %w", p.label.Point, err)
	}
	p.buf, p.lines = p.buf[:0], 0
	return p.bad
}

// Close flushes and closes the file. A second Close does nothing.
func (p *Part) Close() error {
	if p.file == nil {
		return nil
	}
	err := errors.Join(p.Flush(), p.file.Close())
	p.file, p.bad = nil, errors.Join(p.bad, os.ErrClosed)
	return err
}
