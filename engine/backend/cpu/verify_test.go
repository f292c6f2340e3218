package cpu

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/trbench/trbench/engine/step"
)

// pair is two models of an engine: 0 drafts, 1 verifies.
func pair(t *testing.T, p *Proposals, requests int) (small, large *rig) {
	small = newRig(t, tiny(1), Options{Proposals: p}, requests)
	large = newRig(t, tiny(2), Options{Proposals: p}, requests)
	return small, large
}

// What speculative sampling writes has the verifying model's distribution, whether or not it knows what drafts were
// sampled from; and it keeps as many as the two distributions share.
func TestSpeculativeSamplingIsExact(t *testing.T) {
	const requests = 4000
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("proposals=%v", known), func(t *testing.T) {
			var p *Proposals
			if known {
				p = NewProposals(4)
			}
			small, large := pair(t, p, requests)
			var draft, check []feed
			for h := range requests {
				small.tokens[h] = []int32{3, 1, 4}
				small.sampling[h] = Sampling{Temperature: 1, Seed: 3, Stop: []int32{}}
				large.sampling[h] = small.sampling[h]
				draft = append(draft, feed{handle: step.Handle(h), upto: 3, sample: true})
				check = append(check, feed{handle: step.Handle(h), upto: 4, verify: 1, sample: true})
			}
			for h, id := range small.run(draft...).Token {
				large.tokens[h] = append(slices.Clone(small.tokens[h]), id)
			}
			b := large.batch(check...)
			b.Model, b.Want = 1, step.Drafts
			res := large.forward(b)

			q := chances(small.Logits(0))
			p1 := chances(large.logits(large.plan.rows[0].outputs))
			shared := 0.
			for i := range q {
				shared += min(q[i], p1[i])
			}
			counts, kept := make([]int, len(q)), 0.
			for h := range requests {
				d := &res.Drafts[h]
				if (res.Accept[h] == 1) != d.Kept {
					t.Fatalf("row %d: accepts %d, draft kept: %v", h, res.Accept[h], d.Kept)
				}
				id := d.Instead
				if d.Kept {
					id = large.tokens[h][3]
					kept++
				}
				counts[id]++
				drafted := large.tokens[h][3]
				ratio := p1[drafted]
				if known {
					ratio = min(1, p1[drafted]/q[drafted])
					if math.Abs(d.Variation-(1-shared)) > 1e-5 {
						t.Fatalf("row %d: variation %g, want %g", h, d.Variation, 1-shared)
					}
					if want := slices.Max(p1) - slices.Max(q); math.Abs(d.Gain-want) > 1e-5 {
						t.Fatalf("row %d: gain %g, want %g", h, d.Gain, want)
					}
				}
				if math.Abs(d.Ratio-ratio) > 1e-5 || math.Abs(d.Loss+math.Log(p1[drafted])) > 1e-5 {
					t.Fatalf("row %d: ratio %g, loss %g; want %g, %g", h, d.Ratio, d.Loss, ratio, -math.Log(p1[drafted]))
				}
			}
			agree(t, "written", counts, p1)
			if want := shared * requests; known && math.Abs(kept-want) > 5*math.Sqrt(want*(1-shared)) {
				t.Errorf("kept %g of %d drafts, want %.0f", kept, requests, want)
			}
		})
	}
}

// Without step.Drafts the result is what a router that follows Accept makes of it: up to the first draft that ends the
// output, which it knows from the drafter.
func TestVerifyingRowsAreTheSameWithoutScores(t *testing.T) {
	const requests, drafts = 200, 3
	p := NewProposals(drafts)
	small, large := pair(t, p, requests)
	var rows []feed
	for h := range requests {
		s := Sampling{Temperature: 1.5, TopK: 8, Seed: 3}
		if h%2 == 0 {
			s = Sampling{}
		}
		small.sampling[h], large.sampling[h] = s, s
		small.tokens[h] = randomTokens(uint64(h), 4, small.config.Vocab)
		from := 0
		for k := range drafts {
			id := small.run(feed{handle: step.Handle(h), from: from, upto: 4 + k, sample: true}).Token[0]
			small.tokens[h] = append(small.tokens[h], id)
			from = 4 + k
		}
		large.tokens[h] = small.tokens[h]
		rows = append(rows, feed{handle: step.Handle(h), upto: 4 + drafts, verify: drafts, sample: true})
	}
	b := large.batch(rows...)
	b.Model = 1
	plain := large.forward(b)
	accept, token, stop := slices.Clone(plain.Accept), slices.Clone(plain.Token), slices.Clone(plain.Stop)
	for i := range rows {
		rows[i].from = 0
	}
	b = large.batch(rows...)
	b.Model, b.Want = 1, step.Drafts
	scored := large.forward(b)
	seen := [drafts + 1]int{}
	for h := range requests {
		kept, id, ends := scored.Accept[h], scored.Token[h], scored.Ends(b, h, scored.Accept[h])
		if kept < drafts {
			id = scored.Drafts[h*drafts+int(kept)].Instead
		}
		for j := range kept {
			if draft := large.tokens[h][4+j]; large.Model.stops(&large.sampling[h], draft) {
				kept, id, ends = j, draft, true
				break
			}
		}
		if kept != accept[h] || id != token[h] || ends != stop[h] {
			t.Errorf("row %d: %d kept, then %d, stop %v; with scores %d, %d, %v",
				h, accept[h], token[h], stop[h], kept, id, ends)
		}
		seen[accept[h]]++
	}
	for n, rows := range seen {
		if rows == 0 {
			t.Errorf("no row keeps %d of %d drafts: the test shows little", n, drafts)
		}
	}
}

// A greedy request keeps the drafts that are the model's own text, and goes on with that text.
func TestGreedyVerificationWritesTheModelsText(t *testing.T) {
	b := newRig(t, tiny(2), Options{}, 1)
	b.sampling[0].Stop = []int32{}
	text := []int32{3, 1, 4}
	const drafts = 5
	for range drafts + 1 {
		b.tokens[0] = text
		text = append(text, b.run(feed{handle: 0, upto: len(text), sample: true}).Token[0])
	}
	for wrong := range drafts + 1 {
		b.tokens[0] = slices.Clone(text[:3+drafts])
		if wrong < drafts {
			b.tokens[0][3+wrong] = (text[3+wrong] + 1) % int32(b.config.Vocab)
		}
		res := b.run(feed{handle: 0, upto: 3 + drafts, verify: drafts, sample: true})
		if int(res.Accept[0]) != wrong || res.Token[0] != text[3+wrong] || res.Stop[0] {
			t.Errorf("draft %d wrong: %d kept, then %d, stop %v; want %d, then %d", wrong, res.Accept[0], res.Token[0],
				res.Stop[0], wrong, text[3+wrong])
		}
	}
	// A kept draft that ends the output is the token that is written; nothing after it counts.
	b.tokens[0] = text[:3+drafts]
	b.sampling[0].Stop = []int32{text[5]}
	end := slices.Index(text[3:], text[5])
	res := b.run(feed{handle: 0, upto: 3 + drafts, verify: drafts, sample: true})
	if int(res.Accept[0]) != end || res.Token[0] != text[5] || !res.Stop[0] {
		t.Errorf("an end among the drafts: %d kept, then %d, stop %v; want %d, then %d, true", res.Accept[0], res.Token[0],
			res.Stop[0], end, text[5])
	}
}

// trace is the recorded pair: what gsm-s and gsm-l say about each token of reference answers.
type trace struct {
	pos                                       int
	token, smallTop, largeTop                 int32
	entropy, confidence, margin, shared, loss float64
}

func readTrace(t *testing.T, problem string) (rows []trace) {
	t.Helper()
	f, err := os.Open(filepath.Join(sharedData(t), "traces", "gsm8k_test_token_trace.csv"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := r.Read()
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		if line[0] != problem {
			continue
		}
		field := func(name string) float64 {
			v, err := strconv.ParseFloat(line[slices.Index(head, name)], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		rows = append(rows, trace{
			pos: int(field("pos")), token: int32(field("token")), smallTop: int32(field("s_top1")),
			largeTop: int32(field("l_top1")), entropy: field("s_entropy"), confidence: field("s_maxprob"),
			margin: field("s_margin"), shared: field("accept_prob"), loss: field("l_nll"),
		})
	}
}

// The recorded scores of the demo pair come from another implementation; they have four decimals.
func TestScoresAgreeWithTheRecordedPair(t *testing.T) {
	const decimals = 6e-5
	g := readGolden(t, "gsm-s")
	p := NewProposals(1000)
	small := newRig(t, openWeights(t, "models/gsm-pair/gsm-s"), Options{Proposals: p}, 1)
	large := newRig(t, openWeights(t, "models/gsm-pair/gsm-l"), Options{Proposals: p}, 1)
	near := func(got, want float64) bool { return math.Abs(got-want) <= decimals }

	rows := readTrace(t, "0")
	prompt := g.Cases[0].Prompt
	if len(rows) == 0 || rows[0].pos != len(prompt) {
		t.Fatalf("the trace starts at %v, want position %d", rows[:min(1, len(rows))], len(prompt))
	}
	text := slices.Clone(prompt)
	for _, r := range rows {
		text = append(text, r.token)
	}
	small.tokens[0], large.tokens[0] = text, text
	from := 0
	for _, r := range rows {
		b := small.batch(feed{handle: 0, from: from, upto: r.pos, sample: true})
		b.Want, b.TopK = step.Entropy|step.Normalised|step.Confidence|step.Margin|step.Top, 2
		res := small.forward(b)
		from = r.pos
		if res.Token[0] != r.smallTop || !near(res.Entropy[0], r.entropy) || !near(res.Confidence[0], r.confidence) ||
			!near(res.Margin[0], r.margin) || !near(res.Normalised[0], r.entropy/math.Log(1024)) ||
			res.Top[0].Token != r.smallTop || res.Top[0].Probability != res.Confidence[0] ||
			!near(res.Top[0].Probability-res.Top[1].Probability, r.margin) {
			t.Fatalf("position %d: token %d, entropy %g, confidence %g, margin %g; recorded %+v", r.pos, res.Token[0],
				res.Entropy[0], res.Confidence[0], res.Margin[0], r)
		}
		p.put(0, proposal{request: b.ID[0], pos: int32(r.pos), token: r.token}, small.Logits(0))
	}
	b := large.batch(feed{handle: 0, upto: len(text), verify: len(rows), sample: true})
	b.Model, b.Want = 1, step.Drafts
	res := large.forward(b)
	accept := 0
	for i, r := range rows {
		d := res.Drafts[i]
		if d.Agrees != (r.token == r.largeTop) || d.Instead != r.largeTop || !near(d.Loss, r.loss) ||
			!near(1-d.Variation, r.shared) {
			t.Fatalf("position %d: %+v; recorded %+v", r.pos, d, r)
		}
		if accept == i && d.Kept {
			accept++
		}
	}
	if int(res.Accept[0]) != accept {
		t.Errorf("%d drafts are kept, want %d", res.Accept[0], accept)
	}
}
