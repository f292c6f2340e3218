package core

import (
	"fmt"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// Receive takes a message from a peer: a request handed over, the end of one, or a change of the number of active
// requests. A request whose KV is still here is available at once: no allocation, no prefix match, only the unseen
// suffix to feed.
func (s *Subserver) Receive(now clock.Instant, m *step.PeerReq) error {
	switch m.Kind {
	case step.Active:
		s.setActive(m.ActiveN)
		return nil
	case step.Finished:
		s.Release(now, m.Handle)
		return nil
	}
	q := s.at(m.Handle)
	if q.state == waiting || q.state == running {
		return fmt.Errorf("subserver %d: request %d: %w: handed over while it is here", s.cfg.Model, m.ID, ErrOrder)
	}
	if m.Loc < 1 || m.Committed > m.Loc {
		return fmt.Errorf("subserver %d: request %d: %w: %d tokens, %d committed", s.cfg.Model, m.ID, ErrOrder, m.Loc, m.Committed)
	}
	if s.cfg.Router != nil {
		s.cfg.Router.Receive(s.cfg.Model, m)
	}
	keep := q.committed // drafts beyond may be gone
	if m.Via == s.cfg.Model {
		keep = m.Shared // it comes straight back, and the sender knows better
	}
	q.kv = min(q.kv, keep, m.Loc-1)
	q.n, q.committed, q.end, q.id = m.Loc, m.Committed, m.End, m.ID
	q.shared, q.since = unshared, now
	q.holders, q.from = m.Holders, m.From
	q.flags = peer
	if m.Committed < m.Loc {
		q.flags |= verify
		q.kv = min(q.kv, m.Committed-1) // the first draft is scored at the token before it
	}
	if q.kv == 0 {
		s.pool.Give(s.kept.Remove(m.Handle))
		q.blocks = 0
		q.state = waiting
		s.wait.insert(s.seqs, m.Handle)
		return nil
	}
	s.kept.Remove(m.Handle)
	q.state = running
	s.run = append(s.run, m.Handle)
	sortTail(s.seqs, s.run[s.cont:])
	return nil
}

// Complete takes what the step in flight reported: routes its rows, commits what is kept, hands over what leaves and
// ends what is complete. The Effects are valid until the next Complete or Cancel.
func (s *Subserver) Complete(now clock.Instant, res *step.Result) (*Effects, error) {
	if !s.busy {
		return nil, fmt.Errorf("subserver %d: %w: Complete with no batch in flight", s.cfg.Model, ErrOrder)
	}
	s.busy = false
	s.eff.reset()
	b, self := &s.batch, s.cfg.Model
	rows := b.Len()
	routed := s.cfg.Router != nil
	if routed {
		s.route(res, rows)
	}
	to := s.moves.To
	stop := res != nil && res.Stop != nil
	stay := 0
	commits := s.eff.Commit
	for i, h := range b.Handle {
		q := &s.seqs[h]
		q.kv = b.Pos[i]
		if q.flags&cancel != 0 {
			s.finish(h, q, Cancelled)
			continue
		}
		if !b.Sample[i] {
			s.run[stay] = h
			stay++
			continue
		}
		dest := self
		if routed {
			dest = to[i]
		}
		if dest == self && !s.drafts {
			// The common row: one token, sampled, committed, and the request stays.
			q.n++
			q.committed++
			commits = append(commits, Commit{h, 1, 1})
			if q.committed < q.end && !(stop && res.Stop[i]) {
				s.run[stay] = h
				stay++
				continue
			}
			s.finish(h, q, Completed)
			continue
		}
		own := s.sampled(i, q)
		if dest != self {
			s.rollback(q, s.cfg.Router.Send(b, i, dest), &own)
		}
		if !(s.drafts && s.moves.Draft[i]) && q.committed < q.n {
			new := min(q.n, q.end) - q.committed
			q.committed = min(q.n, q.end)
			q.n = q.committed
			commits = append(commits, Commit{h, new, min(own, new)})
			if q.committed == q.end || stop && res.Stop[i] && own > 0 {
				s.finish(h, q, Completed)
				continue
			}
		}
		if dest == self {
			s.run[stay] = h
			stay++
			continue
		}
		s.send(now, h, q, dest)
	}
	s.eff.Commit = commits
	if stay != rows {
		s.run = s.run[:stay+copy(s.run[stay:], s.run[rows:])]
	}
	s.cont = stay
	s.stayed = now
	return &s.eff, nil
}

// route asks the router about the batch in flight.
func (s *Subserver) route(res *step.Result, rows int) {
	if cap(s.moves.To) < rows {
		s.moves.To = make([]step.ModelID, rows, 2*rows)
		if s.drafts {
			s.moves.Draft, s.moves.Accept = make([]bool, rows, 2*rows), make([]int32, rows, 2*rows)
		}
	}
	s.moves.To = s.moves.To[:rows]
	if s.drafts {
		s.moves.Draft, s.moves.Accept = s.moves.Draft[:rows], s.moves.Accept[:rows]
		clear(s.moves.Draft)
		clear(s.moves.Accept)
	}
	s.cfg.Router.Route(s.cfg.Model, &s.batch, res, &s.moves)
}

// sampled adds row i's new token to q and, where the row verified drafts, keeps only those accepted. It returns how
// many uncommitted tokens this model has sampled itself.
func (s *Subserver) sampled(i int, q *seq) (own int32) {
	if drafted := q.n - q.committed; q.flags&verify != 0 && drafted > 0 {
		accept := max(0, min(s.moves.Accept[i], drafted))
		s.cut(q, q.committed+accept)
		own = 0
	} else {
		own = drafted
	}
	q.flags &^= verify
	q.n++
	return own + 1
}

// rollback takes drop tokens back from the end of q: never a committed one.
func (s *Subserver) rollback(q *seq, drop int32, own *int32) {
	if drop <= 0 {
		return
	}
	drop = min(drop, q.n-q.committed)
	s.cut(q, q.n-drop)
	*own = max(0, *own-drop)
}

// cut shortens q to n tokens. KV beyond them is stale; a peer agrees with no more than n of them.
func (s *Subserver) cut(q *seq, n int32) {
	q.n = n
	q.kv = min(q.kv, n)
	q.shared = min(q.shared, n)
}

// send hands q over to peer dest: it stays here as pending with its KV, or, on a server with a prefix cache, as that
// cache says.
func (s *Subserver) send(now clock.Instant, h step.Handle, q *seq, dest step.ModelID) {
	s.eff.Send = append(s.eff.Send, step.PeerReq{
		Handle: h, ID: q.id, Loc: q.n, Committed: q.committed, Shared: q.shared, End: q.end,
		From: s.cfg.Model, To: dest, Via: q.from, Kind: step.Resume, Holders: q.holders | 1<<s.cfg.Model,
	})
	if s.cfg.Retain != Resident {
		s.leave(h, q)
		return
	}
	q.state = pending
	q.since = now
	s.kept.Add(h, q.blocks)
}
