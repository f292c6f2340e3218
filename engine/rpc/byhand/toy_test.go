package byhand_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/trbench/trbench/engine/rpc/byhand"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// The toy models write from a vocabulary of 16 tokens, by distributions that depend on the three tokens before. The
// larger a model, the nearer it is to the largest one.
const (
	vocabulary = 16
	end        = 15 // ends an answer
	delimiter  = 7
	yes        = 3
	largest    = 2
	endless    = 10 // added to a model: it never ends
)

var (
	question = []int32{5, 6, 5}
	digits   = []int32{0, 1, 2, 3, 4, 5, 6, 8, 9, 10}
)

// hash is a draw in [0, 1) of a context and a purpose.
func hash(tokens []int32, purpose int32) float64 {
	key := uint64(purpose) << 32
	for _, t := range tokens[max(0, len(tokens)-3):] {
		key = key*31 + uint64(t) + 1
	}
	return signal.Float64(key, purpose, 0, 0)
}

// next is model m's distribution after some tokens.
func next(m int, tokens []int32) []float64 {
	never := m >= endless
	m %= endless
	p, sum := make([]float64, vocabulary), 0.
	for i := range p {
		x := 5*hash(tokens, int32(i)) + float64(largest-m)*1.5*hash(tokens, int32(100*m+50+i))
		if i == end {
			x -= 2.5
		}
		if p[i] = math.Exp(x); never && i == end {
			p[i] = 1e-300
		}
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func likeliest(p []float64) int32 {
	best := 0
	for i := range p {
		if p[i] > p[best] {
			best = i
		}
	}
	return int32(best)
}

// write is what model m writes at a draw of its own; seed belongs to the position.
func write(m int, tokens []int32, temperature float64, seed uint64) int32 {
	p := next(m, tokens)
	if temperature == 0 {
		return likeliest(p)
	}
	return signal.Sample(p, signal.Float64(seed, int32(m), 0, 0))
}

// score is the external router's.
func score(tokens []int32) float64 { return hash(tokens, 999) }

// sureness is the probability that model m calls what it wrote right, and utility the digit that it gives it.
func sureness(m int, tokens []int32) float64 {
	return next(m, append(append([]int32(nil), tokens...), question...))[yes]
}

func utility(m int, tokens []int32) float64 {
	p, best := next(m, append(append([]int32(nil), tokens...), question...)), 0
	for d, id := range digits {
		if p[id] > p[digits[best]] {
			best = d
		}
	}
	return float64(best)
}

// toyServer serves model m as vLLM would, and the external router.
type toyServer struct {
	m      int
	faulty bool // about one call in five is refused, or broken off, the first time that it is made
	hang   bool // completions are never complete
	tried  sync.Map
	calls  atomic.Int64
	failed atomic.Int64
	open   atomic.Int64 // completions that have not ended
}

func (s *toyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	var in struct {
		Prompt         []int32 `json:"prompt"`
		Input          []int32 `json:"input"`
		MaxTokens      int     `json:"max_tokens"`
		Temperature    float64 `json:"temperature"`
		Seed           uint64  `json:"seed"`
		Logprobs       int     `json:"logprobs"`
		PromptLogprobs int     `json:"prompt_logprobs"`
		StopTokenIDs   []int32 `json:"stop_token_ids"`
		Stream         bool    `json:"stream"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	broken := false
	if s.faulty && hash(append(in.Prompt, in.Input...), 5) < .2 {
		_, again := s.tried.LoadOrStore(fmt.Sprint(in), true)
		broken = !again
	}
	if broken {
		s.failed.Add(1)
	}
	if broken && !in.Stream {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/pooling" {
		json.NewEncoder(w).Encode(map[string]any{"data": []any{map[string]any{"data": []float64{score(in.Input)}}}})
		return
	}
	if r.URL.Path != "/v1/completions" || in.MaxTokens < 1 || in.Logprobs < vocabulary {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	s.open.Add(1)
	defer s.open.Add(-1)
	if s.hang {
		<-r.Context().Done()
		return
	}
	var names []string
	var tops []map[string]float64
	var scored []map[string]any
	if in.PromptLogprobs > 0 {
		scored = append(scored, nil)
		for i := 1; i < len(in.Prompt); i++ {
			place := map[string]any{}
			for id, p := range next(s.m, in.Prompt[:i]) {
				place[strconv.Itoa(id)] = map[string]any{"logprob": math.Log(p), "rank": 1}
			}
			scored = append(scored, place)
		}
	}
	reply := func(finish string, reason any) map[string]any {
		c := map[string]any{"logprobs": map[string]any{"tokens": names, "top_logprobs": tops}}
		if finish != "" {
			c["finish_reason"], c["stop_reason"] = finish, reason
		}
		if scored != nil {
			c["prompt_logprobs"] = scored
		}
		return map[string]any{"object": "text_completion", "choices": []any{c}}
	}
	tokens := in.Prompt
	finish, reason := "length", any(nil)
	for j := 0; j < in.MaxTokens && finish == "length"; j++ {
		id := write(s.m, tokens, in.Temperature, in.Seed+uint64(j))
		top := map[string]float64{}
		for id, p := range next(s.m, tokens) {
			top[fmt.Sprint("token_id:", id)] = math.Log(p)
		}
		tokens = append(tokens, id)
		names, tops = append(names, fmt.Sprint("token_id:", id)), append(tops, top)
		switch {
		case id == end:
			finish = "stop"
		case len(in.StopTokenIDs) > 0 && id == in.StopTokenIDs[0]:
			finish, reason = "stop", id
		}
		if !in.Stream {
			continue
		}
		last := finish
		if last == "length" && j < in.MaxTokens-1 {
			last = ""
		}
		data, _ := json.Marshal(reply(last, reason))
		fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
		names, tops = nil, nil
		if broken && j == 2 {
			panic(http.ErrAbortHandler)
		}
	}
	if in.Stream {
		fmt.Fprint(w, "data: [DONE]\n\n")
		return
	}
	json.NewEncoder(w).Encode(reply(finish, reason))
}

// serve starts a server of model m for the test.
func serve(t testing.TB, s *toyServer) *byhand.Server {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return &byhand.Server{Endpoint: byhand.Endpoint{URL: srv.URL, Client: srv.Client(), Backoff: 1}, Model: fmt.Sprint(s.m), End: end}
}

// toyBackend is model m in the engine.
type toyBackend struct {
	m, drafter  int
	tokens      func(step.Handle) []int32
	temperature float64
	// signal is the external score at a step of model m over tokens that sampled id.
	signal func(a *byhand.Answer, m int, tokens []int32, id int32) float64
	res    step.Result
}

// request is the by-hand state of request id: its seed and draws.
func request(id step.RequestID, temperature float64) *byhand.Answer {
	a := byhand.NewAnswer(nil, 0, nil)
	a.Seed, a.Temperature = 1000*uint64(id+1), temperature
	return a
}

func (b *toyBackend) Forward(_ context.Context, batch *step.Batch) (*step.Result, error) {
	n, r := batch.Len(), &b.res
	r.Reset(batch.Want, n, batch.TopK, batch.Drafted())
	r.Signal, r.Accept = make([]float64, n), make([]int32, n)
	r.Token, r.Stop = make([]int32, n), make([]bool, n)
	first := 0
	for i := range n {
		drafted := 0
		if batch.Verify != nil {
			drafted = int(batch.Verify[i])
		}
		if batch.Sample[i] {
			b.row(batch, i, drafted, first)
		}
		first += drafted
	}
	return r, nil
}

func (b *toyBackend) row(batch *step.Batch, i, drafted, first int) {
	r, a, pos := &b.res, request(batch.ID[i], b.temperature), int(batch.Pos[i])
	known := b.tokens(batch.Handle[i])[:pos]
	id := write(b.m, known, b.temperature, a.Seed+uint64(pos))
	accept, instead, ends := drafted, int32(0), false
	for j := range drafted {
		at := pos - drafted + j
		p, q := next(b.m, known[:at]), next(b.drafter, known[:at])
		s := signal.ScoreDraft(p, q, known[at], a.Draw(at, 1), a.Draw(at, 2))
		if b.temperature == 0 {
			s.Kept, s.Instead = s.Agrees, likeliest(p)
		}
		s.Ends = s.Instead == end
		if accept == drafted && !s.Kept {
			accept, instead = j, s.Instead
		} else if accept == drafted && known[at] == end && r.Drafts == nil {
			accept, instead, ends = j, end, true
		}
		if r.Drafts != nil {
			r.Drafts[first+j] = s
		}
	}
	r.Accept[i], r.Token[i], r.Stop[i] = int32(accept), id, id == end
	if accept < drafted && r.Drafts == nil {
		r.Token[i], r.Stop[i] = instead, ends || instead == end
	}
	m := signal.Measure(next(b.m, known))
	for _, c := range []struct {
		to   []float64
		from float64
	}{{r.Entropy, m.Entropy}, {r.Normalised, m.Normalised}, {r.Confidence, m.Confidence}, {r.Margin, m.Margin}} {
		if c.to != nil {
			c.to[i] = c.from
		}
	}
	if b.signal != nil {
		r.Signal[i] = b.signal(a, b.m, known, id)
	}
}
