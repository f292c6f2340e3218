package signal

import (
	"slices"
	"sync"

	"github.com/trbench/trbench/engine/step"
)

// Recorder keeps all that real models said of a run's requests, so that a simulation of the same requests sees the same
// routing draws: what was sampled, how sure the models were, which drafts they kept and where they ended. It may be used
// by several goroutines. The zero Recorder is empty.
type Recorder struct {
	mu       sync.Mutex
	requests map[step.RequestID][]said
	rows     int
}

// said is what one row of a step reported.
type said struct {
	model                                           step.ModelID
	stop                                            bool
	token, accept                                   int32
	signal, entropy, normalised, confidence, margin float64
	top                                             []step.Candidate
	drafts                                          []step.DraftScore
}

// Take keeps the rows of a step that sampled. It keeps nothing of b and res.
func (r *Recorder) Take(b *step.Batch, res *step.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests == nil {
		r.requests = map[step.RequestID][]said{}
	}
	drafts := 0
	for i, id := range b.ID {
		drafted := 0
		if b.Verify != nil {
			drafted = int(b.Verify[i])
		}
		if b.Sample[i] {
			x := said{
				model: b.Model, stop: at(res.Stop, i), token: at(res.Token, i), accept: at(res.Accept, i), signal: at(res.Signal, i),
				entropy: at(res.Entropy, i), normalised: at(res.Normalised, i), confidence: at(res.Confidence, i), margin: at(res.Margin, i),
			}
			if res.Top != nil {
				x.top = slices.Clone(res.Top[i*b.TopK : (i+1)*b.TopK])
			}
			if drafted > 0 && res.Drafts != nil {
				x.drafts = slices.Clone(res.Drafts[drafts : drafts+drafted])
			}
			r.requests[id] = append(r.requests[id], x)
			r.rows++
		}
		drafts += drafted
	}
}

// at is column[i], or zero where there is no such column.
func at[T any](column []T, i int) (x T) {
	if i < len(column) {
		x = column[i]
	}
	return x
}

// Rows is the number of rows kept.
func (r *Recorder) Rows() int { return r.rows }

// Replay is a source, for one run, that says of each request what was recorded, step by step in the request's own
// order: however steps of different requests fall, a request meets the same tokens. Requests end where they ended.
func (r *Recorder) Replay() *Replayed { return &Replayed{from: r, next: map[step.RequestID]int{}} }

// Replayed is a source made of a Recorder.
type Replayed struct {
	from    *Recorder
	next    map[step.RequestID]int
	strayed int
}

// Strayed is the number of rows that the run asked for and the recording does not have there: of another model, or
// beyond its end. It is 0 where both ran the same requests by the same algorithm.
func (s *Replayed) Strayed() int { return s.strayed }

// Ends implements Ender.
func (s *Replayed) Ends() bool { return true }

// Fill implements Source; a Replayed has more to say than that, and Results calls Report.
func (s *Replayed) Fill(b *step.Batch, dst []float64) {
	res := step.Result{Signal: dst, Accept: make([]int32, b.Len()), Stop: make([]bool, b.Len())}
	s.Report(b, &res)
}

// Report implements Reporter. Columns that res does not have are left out.
func (s *Replayed) Report(b *step.Batch, res *step.Result) {
	drafts := 0
	for i, id := range b.ID {
		drafted := 0
		if b.Verify != nil {
			drafted = int(b.Verify[i])
		}
		if b.Sample[i] {
			x := s.row(id, b.Model)
			put(res.Signal, i, x.signal)
			put(res.Accept, i, x.accept)
			put(res.Stop, i, x.stop)
			put(res.Token, i, x.token)
			put(res.Entropy, i, x.entropy)
			put(res.Normalised, i, x.normalised)
			put(res.Confidence, i, x.confidence)
			put(res.Margin, i, x.margin)
			if res.Top != nil {
				clear(res.Top[i*b.TopK : (i+1)*b.TopK])
				copy(res.Top[i*b.TopK:(i+1)*b.TopK], x.top)
			}
			if res.Drafts != nil {
				clear(res.Drafts[drafts : drafts+drafted])
				copy(res.Drafts[drafts:drafts+drafted], x.drafts)
			}
		}
		drafts += drafted
	}
}

func put[T any](column []T, i int, x T) {
	if i < len(column) {
		column[i] = x
	}
}

// row is what was recorded next of a request; the zero value where the recording has no such row there.
func (s *Replayed) row(id step.RequestID, m step.ModelID) said {
	rows, k := s.from.requests[id], s.next[id]
	if k >= len(rows) || rows[k].model != m {
		s.strayed++
		return said{}
	}
	s.next[id] = k + 1
	return rows[k]
}
