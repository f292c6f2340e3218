package signal

import (
	"fmt"

	"github.com/trbench/trbench/engine/step"
)

const (
	// DefaultAcceptance is the mean probability that the large model of a recorded pair keeps the small one's draft under
	// the rule min(1, p/q): sum min(p, q), averaged over 43,106 tokens. measured: GSM8K answers, demo pair.
	DefaultAcceptance = .732
	// DefaultAgreement is the share of those tokens at which both models' likeliest tokens are the same.
	DefaultAgreement = .750
)

// Acceptance says what becomes of drafted tokens in a simulation. The zero value is iid at the recorded pair's rates.
type Acceptance struct {
	// Alpha[j] is the probability that draft j of a pass is kept if those before it are; the last one holds beyond. nil is
	// DefaultAcceptance: iid.
	Alpha []float64
	// Phases vary Alpha over the output; nil is constant.
	Phases []Phase
	// Agreement is the probability that a draft is the verifying model's likeliest token; 0 is DefaultAgreement.
	Agreement float64
}

func (a *Acceptance) valid() error {
	for j, x := range a.Alpha {
		if !(x >= 0 && x <= 1) {
			return fmt.Errorf("signal: acceptance of draft %d: %g is not a probability", j, x)
		}
	}
	if !(a.Agreement >= 0 && a.Agreement <= 1) {
		return fmt.Errorf("signal: agreement %g is not a probability", a.Agreement)
	}
	if err := validPhases(a.Phases); err != nil {
		return fmt.Errorf("signal: acceptance: %w", err)
	}
	return nil
}

// acceptor draws the fate of drafts.
type acceptor struct {
	Acceptance
	seed uint64
}

func newAcceptor(a Acceptance, seed uint64) acceptor {
	if len(a.Alpha) == 0 {
		a.Alpha = []float64{DefaultAcceptance}
	}
	if a.Agreement == 0 {
		a.Agreement = DefaultAgreement
	}
	return acceptor{a, seed}
}

// alpha is the probability that draft j of a pass, at output position out, is kept.
func (a *acceptor) alpha(j int32, out int32) float64 {
	x := a.Alpha[min(int(j), len(a.Alpha)-1)]
	if len(a.Phases) > 0 {
		x = min(1, x*a.Phases[phase(a.Phases, out)].Factor)
	}
	return x
}

// fates writes the fate of the drafts that batch b scores: how many each row keeps into accept, and, where scores is
// not nil, a score each. alpha is the probability that row i keeps draft j at pos of the sequence.
func fates(
	b *step.Batch, seed uint64, accept []int32, scores []step.DraftScore, alpha func(i int, j, pos int32) float64,
) {
	at := 0
	for i, k := range b.Verify {
		if k == 0 {
			continue
		}
		key := Key(seed, b.ID[i])
		kept := int32(0)
		for j := range k {
			pos := b.Pos[i] - k + j
			a := alpha(i, j, pos)
			keeps := Float64(key, pos, b.Model, Accepted) < a
			if keeps && kept == j {
				kept++
			} else if scores == nil {
				break
			}
			if scores != nil {
				scores[at+int(j)] = step.DraftScore{Ratio: a, Variation: 1 - a, Kept: keeps}
			}
		}
		accept[i] = kept
		at += int(k)
	}
}
