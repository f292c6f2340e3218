package dispatch

import (
	"github.com/trbench/trbench/engine/step"
)

// Reply is what a server reports about one sampled token: a row of a step's result, kept until the orchestrator takes
// it.
type Reply struct {
	Signal     float64
	Accept     int32 // drafts kept by the rule of speculative sampling
	Token      int32
	Stop       bool
	Entropy    float64
	Normalised float64
	Confidence float64
	Margin     float64
	Top        []step.Candidate
	Drafts     []step.DraftScore
}

// ends says that the token after the first accept of verified drafts ends the request.
func (r *Reply) ends(verified, accept int32) bool {
	if accept < verified && int(accept) < len(r.Drafts) {
		return r.Drafts[accept].Ends
	}
	return r.Stop
}

// Take copies row i of a result: what the batch asks for. Its drafts are the ones from number first on.
func (r *Reply) Take(b *step.Batch, res *step.Result, i, first int) {
	r.Signal = at(res.Signal, i)
	r.Token = at(res.Token, i)
	r.Stop = at(res.Stop, i)
	r.Drafts = r.Drafts[:0]
	if b.Want != 0 {
		r.Entropy = at(res.Entropy, i)
		r.Normalised = at(res.Normalised, i)
		r.Confidence = at(res.Confidence, i)
		r.Margin = at(res.Margin, i)
		if r.Top = r.Top[:0]; res.Top != nil {
			r.Top = append(r.Top, res.Top[i*b.TopK:(i+1)*b.TopK]...)
		}
	}
	if len(b.Verify) == 0 || b.Verify[i] == 0 {
		return
	}
	r.Accept = b.Verify[i]
	if res.Accept != nil {
		r.Accept = res.Accept[i]
	}
	if res.Drafts != nil {
		r.Drafts = append(r.Drafts, res.Drafts[first:first+int(b.Verify[i])]...)
	}
}

func at[T any](column []T, i int) (x T) {
	if i < len(column) {
		x = column[i]
	}
	return x
}

// result makes a result of one row.
func (r *Reply) result(b *step.Batch, res *step.Result) {
	res.Signal = row(res.Signal, r.Signal)
	res.Accept = row(res.Accept, r.Accept)
	res.Token = row(res.Token, r.Token)
	res.Stop = row(res.Stop, r.Stop)
	if b.Want == 0 {
		return
	}
	res.Reset(b.Want, 1, b.TopK, len(r.Drafts))
	for _, c := range []struct {
		column []float64
		x      float64
	}{{res.Entropy, r.Entropy}, {res.Normalised, r.Normalised}, {res.Confidence, r.Confidence}, {res.Margin, r.Margin}} {
		if c.column != nil {
			c.column[0] = c.x
		}
	}
	copy(res.Top, r.Top)
	copy(res.Drafts, r.Drafts)
}

func row[T any](column []T, x T) []T { return append(column[:0], x) }
