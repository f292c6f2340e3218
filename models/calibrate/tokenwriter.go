package calibrate

import (
	"fmt"
	"io"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// TokenHeader is the header of the token logs that TokenWriter writes.
const TokenHeader = "request,position,model"

// TokenWriter keeps who wrote each token of a run, and writes a token log at its end. Its Step fits sim.Config.Stepped.
//
// A step writes the token behind the known ones of each row that samples. What stood there or further on is void: the
// model that was left has dropped it. Tokens that a row verifies stay with the model that drafted them.
type TokenWriter struct {
	models   []string
	requests []written // by step.RequestID
}

// written is one request's tokens from a position on.
type written struct {
	first int32
	by    []step.ModelID
}

// NewTokenWriter returns an empty log; models are the names by step.ModelID.
func NewTokenWriter(models []string) *TokenWriter { return &TokenWriter{models: models} }

// Step takes a completed step. It keeps nothing of b.
func (w *TokenWriter) Step(b *step.Batch, _, _ clock.Instant) {
	for i, id := range b.ID {
		if !b.Sample[i] {
			continue
		}
		for int(id) >= len(w.requests) {
			w.requests = append(w.requests, written{first: -1})
		}
		r := &w.requests[id]
		if r.first < 0 {
			r.first = b.Pos[i]
		}
		at := int(b.Pos[i] - r.first)
		if at < 0 || at > len(r.by) { // a sequence that was rolled back beyond its first token, or grew elsewhere
			r.first, r.by, at = b.Pos[i], r.by[:0], 0
		}
		r.by = append(r.by[:at], b.Model)
	}
}

// Write writes the log: requests by their number, tokens by their position in the output, from 0.
func (w *TokenWriter) Write(out io.Writer) error {
	names := make([]string, len(w.models))
	for i, m := range w.models {
		names[i] = csvField(m)
	}
	if _, err := io.WriteString(out, TokenHeader+"\n"); err != nil {
		return err
	}
	var p []byte
	for id := range w.requests {
		p = p[:0]
		for pos, m := range w.requests[id].by {
			if int(m) >= len(names) {
				return fmt.Errorf("token log: a token of model %d, of %d named", m, len(names))
			}
			p = append(appendInt(append(appendInt(p, int64(id)), ','), int64(pos)), ',')
			p = append(append(p, names[m]...), '\n')
		}
		if _, err := out.Write(p); err != nil {
			return err
		}
	}
	return nil
}
