package calibrate

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
)

// TokenForm is how a token log says who wrote a token.
type TokenForm string

// The forms of a token log.
const (
	// Writers names the model of each token.
	Writers TokenForm = "writers"
	// R2R is a trace of the R2R project: usage_type is 2 where the large model had to write the token, 0 where both
	// models agree and 1 where they differ and it doesn't matter.
	R2R TokenForm = "r2r"
	// PairTrace has the likeliest token of both models at each position. The large model counts as the writer where
	// they differ: it is what a router would do that knew.
	PairTrace TokenForm = "pair"
)

// Token is one token of a sequence.
type Token struct {
	Position int32 // in the sequence, as the log counts
	Model    uint8 // index into TokenLog.Models: who wrote it
	// Accept is the probability that speculative sampling keeps a draft of the small model here; NaN where the log has
	// none. Agree says that both models' likeliest token is the same; it means nothing unless the log has it.
	Accept float64
	Agree  bool
}

// Sequence is one request's tokens. Invariant: positions ascend.
type Sequence struct {
	Request string
	Tokens  []Token
}

// TokenLog is the tokens of a run: each request's sequence, in the order in which they begin.
type TokenLog struct {
	File      string
	Form      TokenForm
	Models    []string // smallest first, as far as can be told
	Sequences []Sequence
	Tokens    int
	HasAccept bool
	HasAgree  bool
}

// tokenWants are the columns of all forms of a token log.
var tokenWants = []want{
	{[]string{"request", "request_id", "problem", "data_id"}, true},
	{[]string{"position", "pos"}, true},
	{[]string{"model"}, false},
	{[]string{"usage_type"}, false},
	{[]string{"s_top1"}, false},
	{[]string{"l_top1"}, false},
	{[]string{"accept_prob"}, false},
}

const (
	tokenRequest = iota
	tokenPosition
	tokenModel
	tokenUsage
	tokenSmallTop
	tokenLargeTop
	tokenAccept
)

// ReadTokens reads a token log: a CSV table with a header or JSON objects (JSON Lines, or one array), with these
// columns in any order.
//
//	request       text   or request_id, problem, data_id
//	position      int    or pos: place in the sequence, ascending within a request
//	model         text   who wrote the token; or
//	usage_type    int    of an R2R trace: 2 where the large model wrote it, else 0 or 1; or
//	s_top1        int    and l_top1: the likeliest token of the small and the large model
//	accept_prob   float  optional: probability that speculative sampling keeps the small model's draft
//
// Where there is more than one of model, usage_type and s_top1 the first counts. Requests may be interleaved. name
// stands in errors, which are *DataError.
func ReadTokens(name string, in io.Reader) (*TokenLog, error) {
	r, has, err := openRows(name, in, tokenWants)
	if err != nil {
		return nil, err
	}
	log := &TokenLog{File: name, HasAccept: has[tokenAccept], HasAgree: has[tokenSmallTop] && has[tokenLargeTop]}
	switch {
	case has[tokenSmallTop] != has[tokenLargeTop]:
		return nil, r.fault("", "has one of the columns s_top1 and l_top1 without the other")
	case has[tokenModel]:
		log.Form = Writers
	case has[tokenUsage]:
		log.Form = R2R
	case log.HasAgree:
		log.Form = PairTrace
	default:
		return nil, r.fault("", "doesn't say who wrote a token, wanted a column model, usage_type, or s_top1 "+
			"and l_top1")
	}
	if log.Form != Writers {
		log.Models = []string{"small", "large"}
	}
	sequences := map[string]int{}
	writers := map[string]uint8{}
	for {
		cells, err := r.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		request, err := r.label(cells[tokenRequest])
		if err != nil {
			return nil, err
		}
		t, err := r.token(log, cells, writers)
		if err != nil {
			return nil, err
		}
		i, ok := sequences[request]
		if !ok {
			i = len(log.Sequences)
			sequences[request] = i
			log.Sequences = append(log.Sequences, Sequence{Request: request})
		}
		s := &log.Sequences[i]
		if n := len(s.Tokens); n > 0 && t.Position <= s.Tokens[n-1].Position {
			return nil, r.fault(cells[tokenPosition].name, "found %d behind %d of request %s, wanted positions "+
				"that ascend", t.Position, s.Tokens[n-1].Position, quoted(request))
		}
		s.Tokens = append(s.Tokens, t)
		log.Tokens++
	}
	if log.Tokens == 0 {
		return nil, &DataError{File: name, Msg: "holds no token, wanted at least one line below the header"}
	}
	log.sortModels()
	return log, nil
}

// token reads one line. writers numbers the models by name.
func (r *rows) token(log *TokenLog, c []cell, writers map[string]uint8) (Token, error) {
	t := Token{Accept: math.NaN()}
	position, err := r.whole(c[tokenPosition], 0, maxTokens)
	if err != nil {
		return t, err
	}
	t.Position = int32(position)
	if log.HasAgree {
		small, err := r.whole(c[tokenSmallTop], 0, math.MaxInt32)
		if err != nil {
			return t, err
		}
		large, err := r.whole(c[tokenLargeTop], 0, math.MaxInt32)
		if err != nil {
			return t, err
		}
		t.Agree = small == large
	}
	if log.HasAccept {
		if t.Accept, err = r.real(c[tokenAccept], 0, 1); err != nil {
			return t, err
		}
	}
	switch log.Form {
	case R2R:
		usage, err := r.whole(c[tokenUsage], 0, 2)
		if err != nil {
			return t, err
		}
		if usage == 2 {
			t.Model = 1
		}
	case PairTrace:
		if !t.Agree {
			t.Model = 1
		}
	default:
		name, err := r.label(c[tokenModel])
		if err != nil {
			return t, err
		}
		i, ok := writers[name]
		if !ok {
			if len(writers) == step.MaxModels {
				return t, r.fault(c[tokenModel].name, "found %s, the ninth model, wanted at most %d",
					quoted(name), step.MaxModels)
			}
			i = uint8(len(writers))
			writers[name] = i
			log.Models = append(log.Models, name)
		}
		t.Model = i
	}
	return t, nil
}

// sortModels puts the smallest model first: by parameters where all are known models, by number where all names are
// numbers, else as they come.
func (log *TokenLog) sortModels() {
	if log.Form != Writers {
		return
	}
	size := make([]float64, len(log.Models))
	known, numbered := true, true
	for i, name := range log.Models {
		card, err := models.Lookup(name)
		if err != nil {
			known = false
			break
		}
		size[i] = float64(card.Params())
	}
	if !known {
		for i, name := range log.Models {
			n, err := strconv.Atoi(name)
			numbered = numbered && err == nil
			size[i] = float64(n)
		}
		if !numbered {
			return
		}
	}
	order := make([]int, len(log.Models))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size[a], size[b]) })
	names, rank := make([]string, len(order)), make([]uint8, len(order))
	for to, from := range order {
		names[to], rank[from] = log.Models[from], uint8(to)
	}
	log.Models = names
	for i := range log.Sequences {
		for k := range log.Sequences[i].Tokens {
			t := &log.Sequences[i].Tokens[k]
			t.Model = rank[t.Model]
		}
	}
}
