package experiment

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/results"
)

// tracer writes the steps of one point as Chrome trace events: a process a point, a thread a model. Perfetto and
// chrome://tracing read the file that JoinTraces makes of them.
type tracer struct {
	file  *os.File
	out   *bufio.Writer
	point int
	buf   []byte
}

const tracePrefix, traceSuffix = "trace.", ".part"

func newTracer(dir string, p *Plan, pt *Point) (*tracer, error) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s%06d%s", tracePrefix, pt.Index, traceSuffix)))
	if err != nil {
		return nil, err
	}
	t := &tracer{file: f, out: bufio.NewWriterSize(f, 1<<16), point: pt.Index}
	t.name("process_name", 0, pt.String())
	for i, m := range p.serving(pt) {
		t.name("thread_name", i, m.Name)
	}
	return t, nil
}

// name labels the point, or a model of it.
func (t *tracer) name(kind string, thread int, label string) {
	text, _ := json.Marshal(label)
	fmt.Fprintf(t.out, `{"ph":"M","pid":%d,"tid":%d,"name":%q,"args":{"name":%s}},`+"\n", t.point, thread, kind, text)
}

// step writes one step. Errors of the buffer come back from close.
func (t *tracer) step(b *step.Batch, start, end clock.Instant) {
	p := append(t.buf[:0], `{"ph":"X","pid":`...)
	p = strconv.AppendInt(p, int64(t.point), 10)
	p = append(p, `,"tid":`...)
	p = strconv.AppendInt(p, int64(b.Model), 10)
	p = append(p, `,"ts":`...)
	p = strconv.AppendFloat(p, float64(start)/1e3, 'f', 3, 64)
	p = append(p, `,"dur":`...)
	p = strconv.AppendFloat(p, float64(end-start)/1e3, 'f', 3, 64)
	p = append(p, `,"name":"b=`...)
	p = strconv.AppendInt(p, int64(b.Len()), 10)
	p = append(p, `","args":{"batch":`...)
	p = strconv.AppendInt(p, int64(b.Len()), 10)
	p = append(p, `,"extends":`...)
	p = strconv.AppendInt(p, int64(b.Shape.Extends), 10)
	p = append(p, `,"tokens":`...)
	p = strconv.AppendInt(p, b.Shape.Tokens(), 10)
	p = append(p, "}},\n"...)
	t.buf = p
	t.out.Write(p)
}

func (t *tracer) close() error { return errors.Join(t.out.Flush(), t.file.Close()) }

// JoinTraces makes trace.json of the parts in dir, in the order of points, and removes them.
func JoinTraces(dir string) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var parts []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tracePrefix) && strings.HasSuffix(e.Name(), traceSuffix) {
			parts = append(parts, filepath.Join(dir, e.Name()))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	slices.SortFunc(parts, cmp.Compare[string])
	f, err := os.Create(filepath.Join(dir, results.TraceFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<16)
	out.WriteString("[\n")
	for _, name := range parts {
		part, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, part)
		if err := errors.Join(err, part.Close(), os.Remove(name)); err != nil {
			return err
		}
	}
	out.WriteString(`{"ph":"M","pid":0,"tid":0,"name":"trace_end","args":{}}` + "\n]\n")
	return out.Flush()
}
