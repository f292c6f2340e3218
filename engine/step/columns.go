package step

// Columns is a set of the optional columns of a Result. A router asks for those that it reads; the others stay nil, and
// nobody computes them.
type Columns uint16

const (
	// Entropy is Result.Entropy.
	Entropy Columns = 1 << iota
	// Normalised is Result.Normalised.
	Normalised
	// Confidence is Result.Confidence.
	Confidence
	// Margin is Result.Margin.
	Margin
	// Top is Result.Top.
	Top
	// Drafts is Result.Drafts.
	Drafts
)

// Has says whether all columns of d are in c.
func (c Columns) Has(d Columns) bool { return c&d == d }

// Candidate is one of the likeliest next tokens.
type Candidate struct {
	Token       int32
	Probability float64
}

// DraftScore is what the verifying model says about one drafted token. p is its distribution at the token's position, q
// the drafting model's.
type DraftScore struct {
	// Ratio is the probability that the rule of speculative sampling keeps the token: min(1, p/q) of the drafted token,
	// or, where only the distributions are known, its mean over q, sum min(p, q).
	Ratio float64
	// Variation is the total variation distance between p and q: 1 - sum min(p, q).
	Variation float64
	// Gain is max p - max q: how much surer the verifying model is.
	Gain float64
	// Loss is -ln p of the drafted token, nats.
	Loss float64
	// Kept says that the rule of speculative sampling keeps this token, whatever became of those before it.
	Kept bool
	// Agrees says that the drafted token is p's likeliest one.
	Agrees bool
	// Instead is the token that the verifying model samples where this draft is the first one that isn't kept; 0 where
	// only time is simulated.
	Instead int32
	// Ends says that Instead ends the request before its limit.
	Ends bool
}

// Reset makes the columns in want n rows long and the others nil, keeping their memory. Drafts gets drafts rows, Top n
// times width.
func (r *Result) Reset(want Columns, n, width, drafts int) {
	r.Entropy = column(r.Entropy, want.Has(Entropy), n)
	r.Normalised = column(r.Normalised, want.Has(Normalised), n)
	r.Confidence = column(r.Confidence, want.Has(Confidence), n)
	r.Margin = column(r.Margin, want.Has(Margin), n)
	r.Top = column(r.Top, want.Has(Top), n*width)
	r.Drafts = column(r.Drafts, want.Has(Drafts), drafts)
}

func column[T any](c []T, wanted bool, n int) []T {
	switch {
	case !wanted:
		return nil
	case cap(c) < n || c == nil:
		return make([]T, n, 2*n+1)
	}
	return c[:n]
}

// Ends says that the token that row i of b writes ends the request before its limit: the one after the first accept of
// the drafts that it verified.
func (r *Result) Ends(b *Batch, i int, accept int32) bool {
	if r.Drafts != nil && b.Verify != nil && accept < b.Verify[i] {
		first := 0
		for _, k := range b.Verify[:i] {
			first += int(k)
		}
		return r.Drafts[first+int(accept)].Ends
	}
	return r.Stop != nil && r.Stop[i]
}

// Lacks names a column that b wants and r does not have, or not for every row; "" if there is none.
func (r *Result) Lacks(b *Batch) string {
	if b.Want == 0 {
		return ""
	}
	n := b.Len()
	for _, c := range []struct {
		column Columns
		name   string
		have   int
		rows   int
	}{
		{Entropy, "entropy", len(r.Entropy), n}, {Normalised, "normalised entropy", len(r.Normalised), n},
		{Confidence, "confidence", len(r.Confidence), n}, {Margin, "margin", len(r.Margin), n},
		{Top, "top candidates", len(r.Top), n * b.TopK}, {Drafts, "draft scores", len(r.Drafts), b.Drafted()},
	} {
		if b.Want.Has(c.column) && c.have < c.rows {
			return c.name
		}
	}
	return ""
}

// Drafted is the number of drafted tokens that the batch scores.
func (b *Batch) Drafted() int {
	n := 0
	for _, k := range b.Verify {
		n += int(k)
	}
	return n
}
