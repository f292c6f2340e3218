package experiment

import (
	"context"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// Generation asks two models for one answer.
type Generation struct {
	Prompt    string
	Chat      bool // the prompt is a user's message in the tokenizer's chat template
	Max       int  // tokens
	Algorithm string
	Threshold float64
	Sampling  cpu.Sampling
}

// Written is a piece of an answer: whole characters, and the model that wrote them.
type Written struct {
	Text  string
	Model step.ModelID
}

// Generated sums up an answer.
type Generated struct {
	Tokens, Large, Hops int
	Prompt              int
	TTFT, Total         time.Duration
}

// Generate runs one request on the engine and calls write for each piece as it is committed.
func (l *Local) Generate(ctx context.Context, g Generation, write func(Written)) (*Generated, error) {
	r, err := route.New(g.Algorithm, route.Options{Models: len(l.Names), Threshold: g.Threshold, Seed: g.Sampling.Seed})
	if err == nil {
		err = localRouter(g.Algorithm, r)
	}
	if err != nil {
		return nil, usage(err)
	}
	if err := l.text(g.Chat); err != nil {
		return nil, err
	}
	ids, err := l.encode(g.Prompt, g.Chat)
	if err != nil {
		return nil, usage(err)
	}
	if len(ids) == 0 {
		return nil, usagef("the prompt is empty")
	}
	if most := l.positions(); len(ids)+g.Max > most {
		return nil, usagef("prompt %d + output %d = %d tokens exceed the models' %d positions", len(ids), g.Max, len(ids)+g.Max, most)
	}
	l.sampling = g.Sampling
	l.sampling.Stop = l.ends()
	begin := time.Now()
	c := engine.Config{Router: r, Sequences: l.sequences, Now: func() clock.Instant { return clock.Instant(time.Since(begin)) }}
	for i, b := range l.backends {
		c.Models = append(c.Models, engine.Model{Name: l.Names[i], Backend: b})
	}
	e, err := engine.New(c)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	s, err := e.Submit(ctx, engine.Request{Prompt: len(ids), Max: g.Max, Tokens: ids})
	if err != nil {
		return nil, err
	}
	out := &Generated{Prompt: len(ids)}
	decoder := l.Tokenizer.Decoder(true)
	last := step.ModelID(0)
	for {
		chunk, ok := s.Next(ctx)
		if !ok {
			break
		}
		if out.Tokens == 0 {
			out.TTFT = time.Duration(chunk.At)
		}
		for k, id := range chunk.IDs {
			m := chunk.Model
			if k < len(chunk.IDs)-chunk.Own {
				m = 0 // an accepted draft is the small model's
			}
			if m > 0 {
				out.Large++
			}
			out.Tokens++
			last = m
			if text := decoder.Add(id); text != "" {
				write(Written{text, m})
			}
		}
		out.Total = time.Duration(chunk.At)
	}
	if text := decoder.Flush(); text != "" {
		write(Written{text, last})
	}
	out.Hops = s.Hops()
	if ctx.Err() != nil {
		return out, &Error{ExitInterrupted, ctx.Err()}
	}
	return out, s.Err()
}
