package core

import (
	"strconv"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// EventLog is what tests compare between two drivers of the same core: one line a completed step, one line a commit.
// A nil log costs one branch.
type EventLog struct {
	Lines []string
	buf   []byte
}

// Step logs a completed step: its Instant, model and requests, with the tokens that each row fed.
func (l *EventLog) Step(now clock.Instant, b *step.Batch) {
	if l == nil {
		return
	}
	p := l.stamp(now)
	p = append(p, " m"...)
	p = strconv.AppendInt(p, int64(b.Model), 10)
	p = append(p, " ["...)
	for i, id := range b.ID {
		if i > 0 {
			p = append(p, ' ')
		}
		p = strconv.AppendInt(p, int64(id), 10)
		p = append(p, '+')
		p = strconv.AppendInt(p, int64(b.Feed[i]), 10)
		p = append(p, '@')
		p = strconv.AppendInt(p, int64(b.Pos[i]), 10)
	}
	l.add(append(p, ']'))
}

// Commit logs tokens committed to a request.
func (l *EventLog) Commit(now clock.Instant, id step.RequestID, tokens int32) {
	if l == nil {
		return
	}
	p := append(l.stamp(now), " commit r"...)
	p = strconv.AppendInt(p, int64(id), 10)
	p = append(p, " +"...)
	l.add(strconv.AppendInt(p, int64(tokens), 10))
}

// Done logs the end of a request.
func (l *EventLog) Done(now clock.Instant, id step.RequestID) {
	if l == nil {
		return
	}
	p := append(l.stamp(now), " done r"...)
	l.add(strconv.AppendInt(p, int64(id), 10))
}

// Failed logs a request that an error ended.
func (l *EventLog) Failed(now clock.Instant, id step.RequestID) {
	if l == nil {
		return
	}
	p := append(l.stamp(now), " failed r"...)
	l.add(strconv.AppendInt(p, int64(id), 10))
}

func (l *EventLog) stamp(now clock.Instant) []byte {
	return strconv.AppendInt(l.buf[:0], int64(now), 10)
}

func (l *EventLog) add(p []byte) {
	l.buf = p
	l.Lines = append(l.Lines, string(p))
}
