package byhand

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Server is one model behind a completions endpoint. It knows nothing between two calls: each sends the whole context.
type Server struct {
	Endpoint
	Model string // as the server calls it
	Top   int    // likeliest tokens to report with each one; what is computed of a distribution is of these; 0: 20
	End   int32  // the token that ends the model's answers
}

// Call asks a server to continue a context.
type Call struct {
	Prompt      []int32
	Max         int     // tokens; 0 makes no call
	Until       int32   // a token that ends the call, though not the answer; 0: none
	Temperature float64 // 0: the likeliest token
	Seed        uint64  // of the first token's draw
}

// Token is one that a server wrote.
type Token struct {
	ID   int32
	Top  Logprobs // the likeliest tokens in its place, itself included
	Stop bool     // it ends the answer
}

type completionRequest struct {
	Model          string  `json:"model"`
	Prompt         []int32 `json:"prompt"`
	MaxTokens      int     `json:"max_tokens"`
	Temperature    float64 `json:"temperature"`
	Seed           uint64  `json:"seed"`
	Logprobs       int     `json:"logprobs"`
	PromptLogprobs int     `json:"prompt_logprobs,omitempty"`
	StopTokenIDs   []int32 `json:"stop_token_ids,omitempty"`
	TokensAsIDs    bool    `json:"return_tokens_as_token_ids"`
	Stream         bool    `json:"stream,omitempty"`
}

type completion struct {
	Choices []struct {
		Logprobs struct {
			Tokens      []string             `json:"tokens"`
			TopLogprobs []map[string]float64 `json:"top_logprobs"`
		} `json:"logprobs"`
		PromptLogprobs []map[int32]struct {
			Logprob float64 `json:"logprob"`
		} `json:"prompt_logprobs"`
		FinishReason string `json:"finish_reason"`
		StopReason   *int32 `json:"stop_reason"` // the token of StopTokenIDs that ended the call; null at the model's own end
	} `json:"choices"`
}

func (s *Server) request(c Call) *completionRequest {
	r := &completionRequest{
		Model: s.Model, Prompt: c.Prompt, MaxTokens: c.Max, Temperature: c.Temperature, Seed: c.Seed, Logprobs: s.Top,
		TokensAsIDs: true,
	}
	if r.Logprobs == 0 {
		r.Logprobs = 20
	}
	if c.Until != 0 {
		r.StopTokenIDs = []int32{c.Until}
	}
	return r
}

// tokens are those of a reply, or of a part of one.
func (r *completion) tokens() ([]Token, error) {
	if len(r.Choices) != 1 {
		return nil, fmt.Errorf("%d choices, want 1", len(r.Choices))
	}
	c := &r.Choices[0]
	if len(c.Logprobs.TopLogprobs) != len(c.Logprobs.Tokens) {
		return nil, fmt.Errorf("logprobs of %d tokens for %d", len(c.Logprobs.TopLogprobs), len(c.Logprobs.Tokens))
	}
	var tokens []Token
	for i, name := range c.Logprobs.Tokens {
		id, err := tokenID(name)
		if err != nil {
			return nil, err
		}
		t := Token{ID: id}
		for name, logprob := range c.Logprobs.TopLogprobs[i] {
			id, err := tokenID(name)
			if err != nil {
				return nil, err
			}
			t.Top = append(t.Top, Logprob{id, logprob})
		}
		t.Top.sort()
		tokens = append(tokens, t)
	}
	if n := len(tokens); n > 0 {
		tokens[n-1].Stop = c.FinishReason == "stop" && c.StopReason == nil
	}
	return tokens, nil
}

func tokenID(name string) (int32, error) {
	number, ok := strings.CutPrefix(name, "token_id:")
	id, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("token %q, want token_id:N", name)
	}
	return int32(id), nil
}

// Complete makes one call and returns its tokens.
func (s *Server) Complete(ctx context.Context, c Call) ([]Token, error) {
	if c.Max == 0 {
		return nil, nil
	}
	var reply completion
	if err := s.post(ctx, "/v1/completions", s.request(c), &reply); err != nil {
		return nil, err
	}
	return reply.tokens()
}

// Next is the one token of a call.
func (s *Server) Next(ctx context.Context, c Call) (Token, error) {
	c.Max = 1
	tokens, err := s.Complete(ctx, c)
	if err == nil && len(tokens) != 1 {
		err = fmt.Errorf("%s: %d tokens, want 1", s.URL, len(tokens))
	}
	if err != nil {
		return Token{}, err
	}
	return tokens[0], nil
}

// Verify scores the last drafts tokens of a prompt in one pass: what the model says in the place of each of them, and
// the token that it writes after them.
func (s *Server) Verify(ctx context.Context, c Call, drafts int) (at []Logprobs, next Token, err error) {
	if drafts == 0 {
		next, err = s.Next(ctx, c)
		return nil, next, err
	}
	c.Max = 1
	req := s.request(c)
	req.PromptLogprobs = req.Logprobs
	var reply completion
	if err := s.post(ctx, "/v1/completions", req, &reply); err != nil {
		return nil, Token{}, err
	}
	tokens, err := reply.tokens()
	if err != nil || len(tokens) != 1 || len(reply.Choices[0].PromptLogprobs) != len(c.Prompt) {
		return nil, Token{}, fmt.Errorf("%s: %d tokens, want 1; logprobs of %d prompt tokens, want %d: %w", s.URL, len(tokens),
			len(reply.Choices[0].PromptLogprobs), len(c.Prompt), err)
	}
	for _, place := range reply.Choices[0].PromptLogprobs[len(c.Prompt)-drafts:] {
		var top Logprobs
		for id, x := range place {
			top = append(top, Logprob{id, x.Logprob})
		}
		top.sort()
		at = append(at, top)
	}
	return at, tokens[0], nil
}

// Stream makes a call and hands its tokens over as they come. Where it breaks off, another one goes on from there.
func (s *Server) Stream(ctx context.Context, c Call, take func(Token)) error {
	return s.retry(ctx, func() error {
		if c.Max == 0 {
			return nil
		}
		req := s.request(c)
		req.Stream = true
		body, err := s.open(ctx, "/v1/completions", req)
		if err != nil {
			return err
		}
		defer body.Close()
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			if !ok {
				continue
			}
			if bytes.Equal(data, []byte("[DONE]")) {
				return nil
			}
			var part completion
			if err := json.Unmarshal(data, &part); err != nil {
				return fmt.Errorf("%s: %w", s.URL, err)
			}
			tokens, err := part.tokens()
			if err != nil {
				return fmt.Errorf("%s: %w", s.URL, err)
			}
			for _, t := range tokens {
				c.Prompt, c.Max, c.Seed = append(c.Prompt, t.ID), c.Max-1, c.Seed+1
				take(t)
				if t.Stop {
					c.Max = 0
				}
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.URL, err)
		}
		return fmt.Errorf("%s: %w", s.URL, io.ErrUnexpectedEOF)
	})
}

// Written is a token that is written in this model's name by what is known of its distribution; End ends the answer.
func (s *Server) Written(id int32) Token { return Token{ID: id, Stop: id == s.End} }
