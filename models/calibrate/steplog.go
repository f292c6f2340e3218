package calibrate

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// Step is one line of a step log.
type Step struct {
	Model         int // index into StepLog.Models
	Start         clock.Instant
	Duration      time.Duration // > 0
	Batch         int           // rows
	NewTokens     int64         // tokens fed, over all rows; >= Batch
	ContextTokens int64         // tokens in KV after the step, over all rows; >= NewTokens

	// Shape is what a latency model would be asked for. Split says that it is known: of a batch that holds an extend
	// beside other rows the sums alone don't tell who fed what.
	Shape step.Shape
	Split bool
}

// StepLog is the steps of a run. Invariant: the Start of each model's steps never decreases.
type StepLog struct {
	File       string
	Models     []string // in the order in which they first ran
	Steps      []Step
	Resolution time.Duration // what the last digit of the durations is worth, at least 1 ns
}

// stepWants are the columns of a step log. The last three come together or not at all.
var stepWants = []want{
	{[]string{"model"}, true},
	{timed("start"), true},
	{timed("duration"), true},
	{[]string{"batch", "batch_size"}, true},
	{[]string{"new_tokens"}, true},
	{[]string{"context_tokens"}, true},
	{[]string{"decodes"}, false},
	{[]string{"decode_context_tokens"}, false},
	{[]string{"extend_work"}, false},
}

const (
	stepModel = iota
	stepStart
	stepDuration
	stepBatch
	stepNew
	stepContext
	stepDecodes
	stepDecodeContext
	stepExtendWork
)

// ReadSteps reads a step log: a CSV table with a header or JSON objects, with these columns in any order.
//
//	model                   text   who ran the step
//	start_ns                int    when it began, on any clock that doesn't go back; or start_us, start_ms, start_s
//	duration_ns             int    how long it took; or duration_us, duration_ms, duration_s
//	batch                   int    rows (sequences)
//	new_tokens              int    tokens fed, over all rows
//	context_tokens          int    tokens in KV after the step, over all rows
//	decodes                 int    optional: rows that feed one token over existing KV
//	decode_context_tokens   int    optional: their part of context_tokens
//	extend_work             int    optional: sum over the other rows of n (n + 2k), n tokens fed over k in KV before
//
// Times may be fractions. Without the optional columns a step that feeds one token a row counts as decodes, and one of
// a single row as an extend; what else a step may be stays unknown (Step.Split). name stands in errors, which are
// *DataError.
func ReadSteps(name string, in io.Reader) (*StepLog, error) {
	r, has, err := openRows(name, in, stepWants)
	if err != nil {
		return nil, err
	}
	for i := stepDecodes; i < stepExtendWork; i++ {
		if has[i] != has[i+1] {
			return nil, r.fault("", "has one of the columns decodes, decode_context_tokens and extend_work without "+
				"another: wanted all three or none")
		}
	}
	log := &StepLog{File: name}
	known := map[string]int{}
	var last []clock.Instant // start of each model's last step
	var lastLine []int
	finest := int64(0)
	for {
		cells, err := r.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		s, resolution, err := r.step(cells)
		if err != nil {
			return nil, err
		}
		model, err := r.label(cells[stepModel])
		if err != nil {
			return nil, err
		}
		i, ok := known[model]
		if !ok {
			if len(known) == step.MaxModels {
				return nil, r.fault(cells[stepModel].name, "found %s, the ninth model, wanted at most %d",
					quoted(model), step.MaxModels)
			}
			i = len(log.Models)
			known[model] = i
			log.Models = append(log.Models, model)
			last, lastLine = append(last, s.Start), append(lastLine, r.line)
		}
		if s.Start < last[i] {
			return nil, r.fault(cells[stepStart].name, "found %s: the clock of %s goes back %v, line %d is later",
				cells[stepStart].text, quoted(model), last[i].Sub(s.Start), lastLine[i])
		}
		last[i], lastLine[i] = s.Start, r.line
		s.Model = i
		if finest == 0 || resolution < finest {
			finest = resolution
		}
		log.Steps = append(log.Steps, s)
	}
	if len(log.Steps) == 0 {
		return nil, &DataError{File: name, Msg: "holds no step, wanted at least one line below the header"}
	}
	log.Resolution = time.Duration(finest)
	return log, nil
}

// step reads one line.
func (r *rows) step(c []cell) (s Step, resolution int64, err error) {
	start, _, err := r.nanoseconds(c[stepStart], -1<<62)
	if err != nil {
		return s, 0, err
	}
	duration, resolution, err := r.nanoseconds(c[stepDuration], 1)
	if err != nil {
		return s, 0, err
	}
	batch, err := r.whole(c[stepBatch], 1, 1<<20)
	if err != nil {
		return s, 0, err
	}
	if s.NewTokens, err = r.whole(c[stepNew], batch, maxTokens); err != nil {
		return s, 0, err
	}
	if s.ContextTokens, err = r.whole(c[stepContext], s.NewTokens, maxTokens); err != nil {
		return s, 0, err
	}
	s.Start, s.Duration, s.Batch = clock.Instant(start), time.Duration(duration), int(batch)
	if c[stepDecodes].form != absent || c[stepDecodeContext].form != absent || c[stepExtendWork].form != absent {
		s.Shape, err = r.shape(c, &s)
		s.Split = true
		return s, resolution, err
	}
	s.Shape, s.Split = guess(&s)
	return s, resolution, nil
}

// shape reads the columns that tell decodes and extends apart.
func (r *rows) shape(c []cell, s *Step) (step.Shape, error) {
	decodes, err := r.whole(c[stepDecodes], 0, int64(s.Batch))
	if err != nil {
		return step.Shape{}, err
	}
	extends := int64(s.Batch) - decodes
	fed := s.NewTokens - decodes
	if extends == 0 && fed > 0 {
		return step.Shape{}, r.fault(c[stepDecodes].name, "found %d, all %d rows, but the step feeds %d tokens",
			decodes, s.Batch, s.NewTokens)
	}
	// Each decode has itself in KV, each extend what it feeds.
	lo, hi := decodes, s.ContextTokens-fed
	if extends == 0 {
		lo = s.ContextTokens
	}
	if decodes == 0 {
		hi = 0
	}
	context, err := r.whole(c[stepDecodeContext], lo, hi)
	if err != nil {
		return step.Shape{}, err
	}
	behind := s.ContextTokens - context
	// n (n + 2k) is least for one token a row over nothing, and at most n times twice all that is in KV.
	lo, hi = fed, 2*fed*behind
	work, err := r.whole(c[stepExtendWork], lo, hi)
	if err != nil {
		return step.Shape{}, err
	}
	return step.Shape{
		Decodes: int(decodes), DecodeContext: context,
		Extends: int(extends), ExtendTokens: fed, ExtendWork: work, ExtendContext: behind,
	}, nil
}

// guess is the shape of a step of which only the sums are known, and whether they tell.
func guess(s *Step) (step.Shape, bool) {
	n := s.NewTokens
	switch {
	case n == int64(s.Batch):
		return step.Shape{Decodes: s.Batch, DecodeContext: s.ContextTokens}, true
	case s.Batch == 1:
		k := s.ContextTokens - n
		return step.Shape{Extends: 1, ExtendTokens: n, ExtendWork: n * (n + 2*k), ExtendContext: s.ContextTokens}, true
	}
	return step.Shape{}, false
}

// StepHeader is the header of the step logs that StepWriter writes.
const StepHeader = "model,start_ns,duration_ns,batch,new_tokens,context_tokens," +
	"decodes,decode_context_tokens,extend_work"

// StepWriter writes a step log as steps end. Its Step fits sim.Config.Stepped.
type StepWriter struct {
	out    io.Writer
	models []string // as CSV fields
	buf    []byte
	err    error
}

// NewStepWriter writes the header; models are the names by step.ModelID. The caller buffers out.
func NewStepWriter(out io.Writer, models []string) *StepWriter {
	w := &StepWriter{out: out}
	for _, m := range models {
		w.models = append(w.models, csvField(m))
	}
	_, w.err = io.WriteString(out, StepHeader+"\n")
	return w
}

// Step writes one step. It keeps nothing of b; an error comes back from Err.
func (w *StepWriter) Step(b *step.Batch, start, end clock.Instant) {
	if w.err != nil {
		return
	}
	if int(b.Model) >= len(w.models) {
		w.err = fmt.Errorf("step log: a step of model %d, of %d named", b.Model, len(w.models))
		return
	}
	s := &b.Shape
	p := append(w.buf[:0], w.models[b.Model]...)
	for _, n := range [...]int64{
		int64(start), int64(end.Sub(start)), int64(s.Seqs()), s.Tokens(), s.DecodeContext + s.ExtendContext,
		int64(s.Decodes), s.DecodeContext, s.ExtendWork,
	} {
		p = appendInt(append(p, ','), n)
	}
	w.buf = append(p, '\n')
	_, w.err = w.out.Write(w.buf)
}

// Err is the first error of writing.
func (w *StepWriter) Err() error { return w.err }
