package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// Chunk is tokens that one step committed.
type Chunk struct {
	At     clock.Instant
	Model  step.ModelID
	Tokens int
	Own    int     // of which that model sampled itself
	IDs    []int32 // of the tokens; nil where only time passes
}

// Stream is one request's output. It holds no more than the request's tokens, so a slow reader costs bounded memory and
// holds nobody up.
type Stream struct {
	Arrival clock.Instant

	request Request
	handle  step.Handle
	stop    func() bool // detaches the request from its context
	hops    atomic.Int32
	gone    bool // the client has left; guarded by Engine.mu

	mu     sync.Mutex
	chunks []Chunk
	ended  bool
	at     clock.Instant
	err    error
	notify chan struct{}
}

// Next returns the next chunk, waiting for it. ok is false at the end; Err then says how the request ended.
func (s *Stream) Next(ctx context.Context) (c Chunk, ok bool) {
	for {
		s.mu.Lock()
		if len(s.chunks) > 0 {
			c = s.chunks[0]
			s.chunks = s.chunks[1:]
			s.mu.Unlock()
			return c, true
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return Chunk{}, false
		}
		select {
		case <-s.notify:
		case <-ctx.Done():
			return Chunk{}, false
		}
	}
}

// Err is nil for a request that completed.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Hops is the number of changes of model, final once Next has returned false.
func (s *Stream) Hops() int { return int(s.hops.Load()) }

// push adds a chunk; who calls it then pokes notify.
func (s *Stream) push(c Chunk) {
	s.mu.Lock()
	s.chunks = append(s.chunks, c)
	s.mu.Unlock()
}

func (s *Stream) end(at clock.Instant, err error) {
	s.mu.Lock()
	s.ended, s.at, s.err = true, at, err
	s.mu.Unlock()
	poke(s.notify)
}
