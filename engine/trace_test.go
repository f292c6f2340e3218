package engine_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/testutil"
	"github.com/trbench/trbench/models/demo"
	"github.com/trbench/trbench/models/weights"
)

// recorded is one token of the recorded trace of the demo pair.
type recorded struct {
	problem, pos, token, small, large int
	entropy, accept                   float64
}

// readRecorded reads the trace and the questions beside the repository; the test is skipped where they are not.
func readRecorded(t *testing.T, problems int) (rows []recorded, questions []string) {
	t.Helper()
	f, err := os.Open(testutil.Reference(t, "traces", "gsm8k_test_token_trace.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	q, err := os.Open(testutil.Reference(t, "datasets", "gsm8k_test.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for lines := bufio.NewScanner(q); lines.Scan() && len(questions) < problems; {
		var row struct{ Question string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, row.Question)
	}
	in := csv.NewReader(f)
	head, err := in.Read()
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := in.Read()
		if err == io.EOF {
			return rows, questions
		}
		if err != nil {
			t.Fatal(err)
		}
		field := func(name string) float64 {
			x, err := strconv.ParseFloat(line[slices.Index(head, name)], 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		r := recorded{
			int(field("problem")), int(field("pos")), int(field("token")), int(field("s_top1")), int(field("l_top1")),
			field("s_entropy"), field("accept_prob"),
		}
		if r.problem >= problems {
			return rows, questions
		}
		rows = append(rows, r)
	}
}

// On the answers of GSM8K test, the demo pair's speculative acceptance (sum min(p, q)), the agreement of their likeliest
// tokens, and which tokens an entropy router would hand over, are those of the recorded trace, token by token: it was
// recorded by another implementation, with four decimals.
func TestAcceptanceAndAgreementOfGSM8K(t *testing.T) {
	problems, tokens := 300, 43_106 // all of the trace
	if testing.Short() {
		problems, tokens = 8, 1
	}
	rows, questions := readRecorded(t, problems)
	if len(rows) < tokens {
		t.Fatalf("%d recorded tokens, want %d", len(rows), tokens)
	}
	tok, err := demo.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	var text []int32
	var pair []*cpu.Model
	for _, open := range []func() (*weights.Model, error){
		func() (*weights.Model, error) { return weights.OpenFS(demo.Small(), ".") },
		func() (*weights.Model, error) { return weights.OpenFS(demo.Large(), ".") },
	} {
		w, err := open()
		if err != nil {
			t.Fatal(err)
		}
		m, err := cpu.New(w, cpu.Options{Tokens: func(step.Handle) []int32 { return text }})
		if err != nil {
			t.Fatal(err)
		}
		pair = append(pair, m)
	}
	const decimals, threshold = 7e-5, 3.3844 // nats: the entropy router's default
	var accept, recordedAccept float64
	agree, routed := 0, 0
	from := 0
	for i, r := range rows {
		if i == 0 || rows[i-1].problem != r.problem {
			text = tok.Encode("Question: "+questions[r.problem]+"\nAnswer:", true)
			if len(text) != r.pos {
				t.Fatalf("problem %d: a prompt of %d tokens, recorded %d", r.problem, len(text), r.pos)
			}
			from = 0
			for _, m := range pair {
				m.Release(0)
			}
		}
		var p [2][]float64
		var top [2]int
		entropy := 0.
		for k, m := range pair {
			b := &step.Batch{
				Model: step.ModelID(k), Handle: []step.Handle{0}, ID: []step.RequestID{step.RequestID(r.problem)},
				Pos: []int32{int32(len(text))}, Feed: []int32{int32(len(text) - from)}, Sample: []bool{true}, Want: step.Entropy,
			}
			res, err := m.Forward(context.Background(), b)
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				entropy = res.Entropy[0]
			}
			top[k], p[k] = int(res.Token[0]), softmax(m.Logits(0))
		}
		shared := 0.
		for v := range p[0] {
			shared += min(p[0][v], p[1][v])
		}
		if math.Abs(shared-r.accept) > decimals || top != [2]int{r.small, r.large} || math.Abs(entropy-r.entropy) > decimals {
			t.Fatalf("problem %d, position %d: acceptance %.5f, likeliest tokens %v, entropy %.5f; recorded %+v", r.problem, r.pos, shared, top, entropy, r)
		}
		accept, recordedAccept = accept+shared, recordedAccept+r.accept
		if top[0] == top[1] {
			agree++
		}
		if entropy > threshold {
			routed++
		}
		from = len(text)
		text = append(text, int32(r.token))
	}
	n := float64(len(rows))
	t.Logf("%d tokens: acceptance %.4f (recorded %.4f), agreement %.4f, handed over at %.2f nats %.4f", len(rows), accept/n, recordedAccept/n,
		float64(agree)/n, threshold, float64(routed)/n)
}

// softmax is a distribution by its logits.
func softmax(logits []float32) []float64 {
	p := make([]float64, len(logits))
	most := float64(slices.Max(logits))
	sum := 0.
	for i, x := range logits {
		p[i] = math.Exp(float64(x) - most)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
