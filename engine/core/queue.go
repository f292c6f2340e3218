package core

import "github.com/trbench/trbench/engine/step"

// queue is the FIFO of requests that need admission. Requests that arrive at one Instant stand in id order, whatever
// the order of the calls: ties must fall the same way under every clock.
type queue struct {
	h    []step.Handle
	head int
}

func (w *queue) len() int { return len(w.h) - w.head }

// insert appends h behind everything that came before it.
func (w *queue) insert(seqs []seq, h step.Handle) {
	w.h = append(w.h, h)
	sortTail(seqs, w.h[w.head:])
}

// sortTail moves the last element back over those of the same Instant with a larger id.
func sortTail(seqs []seq, h []step.Handle) {
	i := len(h) - 1
	q := &seqs[h[i]]
	for ; i > 0; i-- {
		p := &seqs[h[i-1]]
		if p.since != q.since || p.id < q.id {
			return
		}
		h[i-1], h[i] = h[i], h[i-1]
	}
}

// pushFront puts a preempted request before all others.
func (w *queue) pushFront(h step.Handle) {
	if w.head > 0 {
		w.head--
		w.h[w.head] = h
		return
	}
	w.h = append(w.h, 0)
	copy(w.h[1:], w.h)
	w.h[0] = h
}

func (w *queue) front() step.Handle { return w.h[w.head] }

// pop takes the front out. The slice is moved down once the dead part is the larger one, so the cost stays O(1).
func (w *queue) pop() {
	w.head++
	if w.head == len(w.h) {
		w.h, w.head = w.h[:0], 0
	} else if w.head > 64 && w.head > len(w.h)/2 {
		w.h = w.h[:copy(w.h, w.h[w.head:])]
		w.head = 0
	}
}

func (w *queue) remove(h step.Handle) {
	for i := w.head; i < len(w.h); i++ {
		if w.h[i] == h {
			w.h = append(w.h[:i], w.h[i+1:]...)
			return
		}
	}
	panic("core: a waiting request is not in the queue")
}
