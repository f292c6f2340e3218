package byhand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Front is the service that clients call: completions by token ids, each answered by the algorithm, streamed or whole.
// A client that goes away ends its request and the calls that it has in flight.
type Front struct {
	Algorithm Algorithm
	Timeout   time.Duration // of a request; 0: none
	slots     chan struct{}
}

// NewFront returns a service of at most active requests at a time; others are told to come again.
func NewFront(a Algorithm, active int) *Front {
	return &Front{Algorithm: a, slots: make(chan struct{}, active)}
}

type frontRequest struct {
	Prompt      []int32 `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float64 `json:"temperature"`
	Seed        uint64  `json:"seed"`
	Stream      bool    `json:"stream"`
}

type frontReply struct {
	Object  string        `json:"object"`
	Choices []frontChoice `json:"choices"`
}

type frontChoice struct {
	Index        int     `json:"index"`
	TokenIDs     []int32 `json:"token_ids"`
	FinishReason *string `json:"finish_reason"`
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req frontRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if len(req.Prompt) == 0 || req.MaxTokens < 1 {
		refuse(w, http.StatusBadRequest, fmt.Errorf("prompt of %d tokens, max_tokens %d: want some", len(req.Prompt), req.MaxTokens))
		return
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, fmt.Errorf("%d requests are active", cap(f.slots)))
		return
	}
	ctx := r.Context()
	if f.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Timeout)
		defer cancel()
	}
	var all []int32
	a := NewAnswer(req.Prompt, req.MaxTokens, func(tokens []Token) {
		var ids []int32
		for _, t := range tokens {
			ids = append(ids, t.ID)
		}
		all = append(all, ids...)
		if req.Stream {
			event(w, reply(ids, ""))
		}
	})
	a.Temperature, a.Seed = req.Temperature, req.Seed
	err := f.Algorithm.Answer(ctx, a)
	finish := "length"
	if a.stopped {
		finish = "stop"
	}
	switch {
	case err != nil && len(all) > 0 && req.Stream:
		event(w, map[string]any{"error": map[string]string{"message": err.Error()}})
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusGatewayTimeout, err)
	case err != nil:
		refuse(w, http.StatusBadGateway, err)
	case req.Stream:
		event(w, reply(nil, finish))
		fmt.Fprint(w, "data: [DONE]\n\n")
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(reply(all, finish))
	}
}

func reply(ids []int32, finish string) frontReply {
	c := frontChoice{TokenIDs: ids}
	if finish != "" {
		c.FinishReason = &finish
	}
	return frontReply{Object: "text_completion", Choices: []frontChoice{c}}
}

// event streams one chunk. A write to a client that has gone fails, and its request's context ends: nobody else cares.
func event(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "text/event-stream")
	data, err := json.Marshal(v)
	if err != nil {
		return
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	if fl, ok := w.(http.Flusher); ok {
		fl.Flush()
	}
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": err.Error(), "code": status}})
}
