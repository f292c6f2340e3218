package core

import (
	"fmt"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
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
	if s.drafts {
		s.theirs[m.Handle] = m.Loc - m.Committed
	}
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
	b.End = now
	rows := b.Len()
	routed := s.cfg.Router != nil
	if routed {
		if b.Want != 0 {
			if res == nil {
				res = &step.Result{}
			}
			if what := res.Lacks(b); what != "" {
				return nil, fmt.Errorf("subserver %d: the router reads %s, which the backend's result does not have", self, what)
			}
		}
		s.moves.Resize(rows, s.drafts)
		s.cfg.Router.Route(self, b, res, &s.moves)
	}
	to := s.moves.To
	stop := res != nil && res.Stop != nil
	stay := 0
	commits := s.eff.Commit
	s.eff.track(s.cfg.Track, rows)
	pos, sample := b.Pos[:rows], b.Sample[:rows]
	for i, h := range b.Handle[:rows] {
		q := &s.seqs[h]
		q.kv = pos[i]
		if q.flags&cancel != 0 {
			s.finish(h, q, Done{Handle: h, Status: Cancelled})
			continue
		}
		if !sample[i] {
			s.run[stay] = h
			stay++
			continue
		}
		dest := self
		if routed {
			dest = to[i]
		}
		if dest == self && (!s.scores || s.plain(i, q)) {
			// The common row: one token, sampled, committed, and the request stays.
			q.n++
			q.committed++
			commits = append(commits, Commit{h, 1, 1})
			if q.committed < q.end && !(stop && res.Stop[i]) {
				s.run[stay] = h
				stay++
				continue
			}
			s.finish(h, q, Done{Handle: h})
			continue
		}
		var end error
		if s.drafts {
			end = s.moves.End[i]
		}
		if end != nil && end != route.ErrEnd {
			s.finish(h, q, Done{h, Failed, end})
			continue
		}
		drop, accept := s.keep(i, h, q, dest)
		if s.cfg.Track {
			s.eff.Rows[i] = Row{accept, q.n}
		}
		if !(s.drafts && s.moves.Draft[i]) && q.committed < q.n {
			c := s.commit(h, q)
			commits = append(commits, c)
			if q.committed == q.end || stop && drop == 0 && res.Ends(b, i, accept) {
				s.finish(h, q, Done{Handle: h})
				continue
			}
		}
		if end != nil {
			s.finish(h, q, Done{Handle: h})
			continue
		}
		if dest == self {
			q.kv = min(q.kv, q.n-1) // a rollback may leave nothing to feed
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

// plain says that row i of a router that may draft neither drafts nor drops, has nothing to verify and does not end.
func (s *Subserver) plain(i int, q *seq) bool {
	if q.n != q.committed {
		return false
	}
	return !s.drafts || !s.moves.Draft[i] && s.moves.Drop[i] == 0 && s.moves.End[i] == nil
}

// keep adds row i's new token to q. Where the row verified drafts, only those accepted stay before it; then what the
// router drops is taken back, never a committed token.
func (s *Subserver) keep(i int, h step.Handle, q *seq, dest step.ModelID) (drop, accept int32) {
	if drafted := q.n - q.committed; q.flags&verify != 0 {
		q.flags &^= verify
		if s.drafts {
			accept = max(0, min(s.moves.Accept[i], drafted))
			s.cut(q, q.committed+accept)
			s.theirs[h] = accept
		}
	}
	q.n++
	switch {
	case dest != s.cfg.Model:
		drop = s.cfg.Router.Send(&s.batch, i, dest)
	case s.drafts:
		drop = s.moves.Drop[i]
	}
	if drop > 0 {
		drop = min(drop, q.n-q.committed)
		s.cut(q, q.n-drop)
		if s.drafts {
			s.theirs[h] = min(s.theirs[h], q.n-q.committed)
		}
	}
	return drop, accept
}

// commit makes all tokens of q committed, up to its end.
func (s *Subserver) commit(h step.Handle, q *seq) Commit {
	new := min(q.n, q.end) - q.committed
	q.committed += new
	q.n = q.committed
	own := new
	if s.drafts {
		own = max(0, new-s.theirs[h])
		s.theirs[h] = 0
	}
	return Commit{h, new, own}
}

// cut shortens q to n tokens. KV beyond them is stale, and its blocks are free again; a peer agrees with no more than n
// of them.
func (s *Subserver) cut(q *seq, n int32) {
	q.n = n
	q.shared = min(q.shared, n)
	if q.kv > n {
		q.kv = n
		if need := s.pool.Blocks(n); need < q.blocks {
			s.pool.Give(q.blocks - need)
			q.blocks = need
		}
	}
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
