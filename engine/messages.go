package engine

import (
	"fmt"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/step"
)

// lanes is a set of subservers, a bit each.
type lanes uint8

// letter is a peer message with the times that price a switch.
type letter struct {
	req  step.PeerReq
	sent time.Time     // when its part of the sender's work was done
	took time.Duration // that part
	// beside says that another model than the receiver had work.
	beside bool
}

// post puts messages into their peers' inboxes, and returns whose they are. Engine.mu is held, so that the peers see all
// of them at once, and one look at the clock does for all: what the sender has done since began is shared out among the
// requests that it hands over, and that the first of them lies there while the others are put beside it is transport.
func (e *Engine) post(began time.Time, eff *core.Effects) (to lanes) {
	var before [step.MaxModels]int
	var beside [step.MaxModels]bool
	resumed := 0
	for _, m := range eff.Send {
		m.ActiveN = int32(e.active)
		switch m.Kind {
		case step.Resume:
			resumed++
		case step.Finished:
			e.refs[m.Handle]++
		}
		l := e.lanes[m.To]
		if to&(1<<m.To) == 0 {
			to |= 1 << m.To
			before[m.To], beside[m.To] = len(l.inbox), e.beside(m.To)
		}
		l.inbox = append(l.inbox, letter{req: m, beside: beside[m.To]})
	}
	if resumed == 0 {
		return to
	}
	took := time.Since(began) / time.Duration(resumed)
	sent := began.Add(took)
	for i, l := range e.lanes {
		if to&(1<<i) == 0 {
			continue
		}
		for k := before[i]; k < len(l.inbox); k++ {
			l.inbox[k].sent, l.inbox[k].took = sent, took
		}
	}
	return to
}

// beside says that another model than to has work. Engine.mu is held.
func (e *Engine) beside(to step.ModelID) bool {
	for k, l := range e.lanes {
		if k != int(to) && (l.busy || e.subs[k].Available() > 0) {
			return true
		}
	}
	return false
}

// announce tells inter-model loops that their inboxes hold letters.
func (e *Engine) announce(to lanes) {
	for i := 0; to != 0; i, to = i+1, to>>1 {
		if to&1 != 0 {
			poke(e.lanes[i].mail)
		}
	}
}

// interModelLoop takes what peers send to model i.
func (e *Engine) interModelLoop(i int) {
	defer e.loops.Done()
	l := e.lanes[i]
	for {
		select {
		case <-l.mail:
			e.mu.Lock()
			some := len(l.inbox) > 0 // else the decode loop was here first
			err := e.receive(i)
			e.mu.Unlock()
			if err != nil {
				e.fail(fmt.Errorf("model %s: %w", e.cfg.Models[i].Name, err))
				return
			}
			if some {
				poke(e.kick)
			}
		case <-e.ctx.Done():
			return
		}
	}
}

// receive empties the inbox of model i. Engine.mu is held.
func (e *Engine) receive(i int) error {
	l := e.lanes[i]
	l.inbox, l.read = l.read[:0], l.inbox
	for k := range l.read {
		m := &l.read[k]
		now := e.now()
		if err := e.subs[i].Receive(now, &m.req); err != nil {
			return err
		}
		if m.req.Kind == step.Finished {
			e.release(m.req.Handle)
			continue
		}
		if e.cfg.Switched != nil {
			e.cfg.Switched(Handover{m.req.ID, m.took, time.Since(m.sent), step.ModelID(i), l.asleep, m.beside})
			l.asleep = false
		}
		if s := e.live[m.req.Handle]; s != nil && s.gone {
			e.cancelHere(now, s)
		}
	}
	return nil
}
