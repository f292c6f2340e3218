package signal

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/engine/step"
)

// Trace is what a pair of models said, token by token, of texts that both were shown: the recorded counterpart of
// random draws. The small model is s in the columns' names, the large one l.
type Trace struct {
	name     string
	problems []problem
	tokens   []token
	have     map[string]bool // optional columns
	largest  int32           // token id
}

// problem is one text: tokens[first:first+output].
type problem struct {
	prompt, first, output int32
}

// token is one position of a text, as the columns say; an optional one that is missing is NaN.
type token struct {
	small, large                   int32   // likeliest tokens, s_top1 and l_top1
	sEntropy, sConfidence, sMargin float64 // s_entropy, s_maxprob, s_margin
	lEntropy, lConfidence          float64 // l_entropy, l_maxprob
	accept                         float64 // accept_prob: sum min(p, q)
	loss                           float64 // -ln p of the small model's likeliest token, nats
	sNLL, lNLL                     float64 // s_nll, l_nll: -ln p of the text's own token
}

// traceColumns are the columns of a trace; the order in a file is free, and others are passed over.
var traceColumns = []struct {
	name     string
	optional bool
}{
	{"problem", false}, {"pos", false}, {"s_top1", false}, {"l_top1", false}, {"s_entropy", false}, {"s_maxprob", false},
	{"s_margin", false}, {"l_entropy", false}, {"accept_prob", false},
	{"token", true}, {"kl_l_s", true}, {"s_nll", true}, {"l_nll", true}, {"l_maxprob", true},
}

// ReadTrace reads a trace: comma-separated values with a header, one token a line, the lines of a problem together and
// in the order of pos. name stands for the input in errors, which say line and column.
//
// Columns: problem (any number, one a text), pos (the token's index in the sequence, so the first one is the length of
// the prompt), s_top1 and l_top1 (each model's likeliest token), s_entropy and l_entropy (nats), s_maxprob (largest
// probability), s_margin (largest less second), accept_prob (sum min(p, q)). Optional: token (the text's own), s_nll and
// l_nll (-ln p of it under each model, nats), kl_l_s (divergence of s from l, nats), l_maxprob. The loss of a draft is
// l_nll where the small model's likeliest token is the text's own, else kl_l_s: the trace does not hold it there.
func ReadTrace(name string, r io.Reader) (*Trace, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("empty: want a header and a line a token")
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t := &Trace{name: name, have: map[string]bool{}}
	at := map[string]int{}
	for i, h := range header {
		at[strings.TrimSpace(strings.TrimPrefix(h, "\ufeff"))] = i
	}
	for _, c := range traceColumns {
		if _, ok := at[c.name]; !ok && !c.optional {
			return nil, fmt.Errorf("%s: line 1: no column %q among %d", name, c.name, len(header))
		} else if c.optional {
			t.have[c.name] = ok
		}
	}
	line := &traceLine{at: at, have: t.have}
	last, pos := int64(-1), int64(0)
	for {
		line.field, err = in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		id, p := line.count("problem"), line.count("pos")
		x := line.token()
		row, _ := in.FieldPos(0)
		switch {
		case line.err != nil:
			return nil, fmt.Errorf("%s: line %d: %w", name, row, line.err)
		case id != last && p < 1:
			return nil, fmt.Errorf("%s: line %d: pos: found %d at the beginning of problem %d, want a prompt of at least 1",
				name, row, p, id)
		case id == last && p != pos+1:
			return nil, fmt.Errorf("%s: line %d: pos: found %d after %d, want %d", name, row, p, pos, pos+1)
		case id != last:
			t.problems = append(t.problems, problem{prompt: int32(p), first: int32(len(t.tokens))})
		}
		last, pos = id, p
		t.problems[len(t.problems)-1].output++
		t.tokens = append(t.tokens, x)
		t.largest = max(t.largest, x.small, x.large)
	}
	if len(t.tokens) == 0 {
		return nil, fmt.Errorf("%s: no tokens", name)
	}
	return t, nil
}

// traceLine reads the fields of one line; the first error stays.
type traceLine struct {
	at    map[string]int
	have  map[string]bool
	field []string
	err   error
}

func (l *traceLine) count(name string) int64 {
	s := strings.TrimSpace(l.field[l.at[name]])
	n, err := strconv.ParseInt(s, 10, 32)
	if (err != nil || n < 0) && l.err == nil {
		l.err = fmt.Errorf("%s: found %q, want a whole number >= 0", name, s)
	}
	return n
}

// number reads a field in [0, hi].
func (l *traceLine) number(name string, hi float64) float64 {
	if have, optional := l.have[name]; optional && !have {
		return math.NaN()
	}
	s := strings.TrimSpace(l.field[l.at[name]])
	x, err := strconv.ParseFloat(s, 64)
	if (err != nil || !(x >= 0 && x <= hi)) && l.err == nil {
		l.err = fmt.Errorf("%s: found %q, want a number in [0, %g]", name, s, hi)
	}
	return x
}

func (l *traceLine) token() token {
	const nats = 1e6 // bounds a typing error, no entropy
	x := token{
		small: int32(l.count("s_top1")), large: int32(l.count("l_top1")),
		sEntropy: l.number("s_entropy", nats), sConfidence: l.number("s_maxprob", 1), sMargin: l.number("s_margin", 1),
		lEntropy: l.number("l_entropy", nats), lConfidence: l.number("l_maxprob", 1), accept: l.number("accept_prob", 1),
		loss: math.NaN(), sNLL: l.number("s_nll", nats), lNLL: l.number("l_nll", nats),
	}
	if l.have["kl_l_s"] {
		x.loss = l.number("kl_l_s", nats)
	}
	if l.have["token"] && l.have["l_nll"] && int32(l.count("token")) == x.small {
		x.loss = x.lNLL
	}
	return x
}

// Name is the input that the trace came from.
func (t *Trace) Name() string { return t.name }

// Tokens is the number of tokens.
func (t *Trace) Tokens() int { return len(t.tokens) }

// Problems is the number of texts.
func (t *Trace) Problems() int { return len(t.problems) }

// Problem is the length of text i's prompt and of what follows it, tokens: the request that replays it.
func (t *Trace) Problem(i int) (prompt, output int32) {
	return t.problems[i].prompt, t.problems[i].output
}

// Acceptance is the mean of accept_prob over all tokens.
func (t *Trace) Acceptance() float64 {
	sum := 0.
	for i := range t.tokens {
		sum += t.tokens[i].accept
	}
	return sum / float64(len(t.tokens))
}

// Agreement is the share of all tokens at which both models' likeliest tokens are the same.
func (t *Trace) Agreement() float64 {
	n := 0
	for i := range t.tokens {
		if t.tokens[i].agree() {
			n++
		}
	}
	return float64(n) / float64(len(t.tokens))
}

func (x *token) agree() bool { return x.small == x.large }

// nll is -ln p of the text's own token under the large model or the small one, nats; NaN where it wasn't recorded.
func (x *token) nll(large bool) float64 {
	if large {
		return x.lNLL
	}
	return x.sNLL
}

// Alone is what one model writes for a request by itself, the first output tokens of the text that it replays: how many
// of them the large model would have written too, and the sum of -ln p of the text's own tokens, nats, NaN where it
// wasn't recorded.
func (t *Trace) Alone(id step.RequestID, output int32, large bool) (agreed int32, nats float64) {
	for i := range output {
		x := t.at(id, i)
		if large || x.agree() {
			agreed++
		}
		nats += x.nll(large)
	}
	return agreed, nats
}

// Threshold is where rule r must have its threshold to fire at a share rate of all tokens on the small model, or of all
// texts where it is on their prompts' score, as nearly as ties allow: midway between the two scores that the threshold separates.
func (t *Trace) Threshold(r Rule, rate float64) (float64, error) {
	if !(rate > 0 && rate < 1) {
		return 0, fmt.Errorf("trace %s: rate %g: want more than 0 and less than 1", t.name, rate)
	}
	if err := t.holds(r, 0); err != nil {
		return 0, err
	}
	var scores []float64
	if r.Score == Prompt {
		for i := range t.problems {
			scores = append(scores, t.difficulty(i))
		}
	} else {
		for i := range t.tokens {
			scores = append(scores, t.tokens[i].score(r, 0, t.logVocabulary(0)))
		}
	}
	slices.Sort(scores)
	n := min(max(int(math.Round(rate*float64(len(scores)))), 1), len(scores)-1)
	if r.Above {
		n = len(scores) - n
	}
	return (scores[n-1] + scores[n]) / 2, nil
}

// logVocabulary is ln V; a V of 0 means one more than the largest token in the trace.
func (t *Trace) logVocabulary(v int) float64 {
	if v <= 0 {
		v = int(t.largest) + 1
	}
	return math.Log(float64(v))
}
