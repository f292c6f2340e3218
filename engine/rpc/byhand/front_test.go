package byhand_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/rpc/byhand"
)

// front starts the service of an algorithm over toy servers.
func front(t *testing.T, a byhand.Algorithm, active int) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(byhand.NewFront(a, active))
	t.Cleanup(srv.Close)
	return srv
}

func ask(ctx context.Context, t *testing.T, srv *httptest.Server, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

type chunk struct {
	Choices []struct {
		TokenIDs     []int32 `json:"token_ids"`
		FinishReason string  `json:"finish_reason"`
	} `json:"choices"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Clients get the same tokens streamed and whole, all at once.
func TestFront(t *testing.T) {
	small, large := &toyServer{m: 0}, &toyServer{m: largest}
	a := &byhand.Entropy{Small: serve(t, small), Large: serve(t, large), Threshold: 1.2}
	a.Small.Client, a.Large.Client = byhand.Pool(4), byhand.Pool(4)
	srv := front(t, a, 8)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			var whole chunk
			resp := ask(t.Context(), t, srv, `{"prompt":[1,2,3],"max_tokens":20}`)
			if err := json.NewDecoder(resp.Body).Decode(&whole); err != nil || len(whole.Choices) != 1 {
				t.Error(err, whole)
				return
			}
			resp = ask(t.Context(), t, srv, `{"prompt":[1,2,3],"max_tokens":20,"stream":true}`)
			var ids []int32
			finish, done := "", false
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
				if done = done || string(data) == "[DONE]"; !ok || done {
					continue
				}
				var part chunk
				if err := json.Unmarshal(data, &part); err != nil {
					t.Error(err)
				}
				ids = append(ids, part.Choices[0].TokenIDs...)
				finish = part.Choices[0].FinishReason
			}
			if !done || len(ids) != 20 || !slices.Equal(ids, whole.Choices[0].TokenIDs) || finish != "length" || whole.Choices[0].FinishReason != "length" {
				t.Errorf("streamed %v (%s, done %t), whole %v", ids, finish, done, whole.Choices[0])
			}
		})
	}
	clients.Wait()
	if small.calls.Load() == 0 || large.calls.Load() == 0 {
		t.Errorf("%d and %d calls", small.calls.Load(), large.calls.Load())
	}
}

// What goes wrong reaches the client as a status: its own mistakes, a full service, a server that refuses, one that is
// too slow.
func TestFrontRefuses(t *testing.T) {
	slow := &toyServer{hang: true}
	hanging := &byhand.Query{Small: serve(t, slow), Large: serve(t, slow), Router: &byhand.Scorer{Endpoint: serve(t, &toyServer{}).Endpoint}}
	srv := front(t, hanging, 1)
	for body, want := range map[string]int{
		`{`:                                   http.StatusBadRequest,
		`{"prompt":[],"max_tokens":3}`:        http.StatusBadRequest,
		`{"prompt":[1,2,3],"max_tokens":0}`:   http.StatusBadRequest,
		`{"prompt":["one"],"max_tokens":"3"}`: http.StatusBadRequest,
	} {
		if resp := ask(t.Context(), t, srv, body); resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", body, resp.Status, want)
		}
	}
	// One request hangs; the next is refused; when the first one's client goes away, its call ends.
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(`{"prompt":[1,2,3],"max_tokens":3}`))
		_, err := srv.Client().Do(req)
		first <- err
	}()
	for slow.open.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if resp := ask(t.Context(), t, srv, `{"prompt":[1,2,3],"max_tokens":3}`); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second one: %s", resp.Status)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for slow.open.Load() > 0 {
		time.Sleep(time.Millisecond)
	}

	late := byhand.NewFront(hanging, 1)
	late.Timeout = 20 * time.Millisecond
	w := httptest.NewRecorder()
	late.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"prompt":[1,2,3],"max_tokens":3}`)))
	if w.Code != http.StatusGatewayTimeout {
		t.Errorf("a server that hangs: %d", w.Code)
	}

	refusing := serve(t, &toyServer{})
	refusing.Top = 1 // the toy server wants more
	resp := ask(t.Context(), t, front(t, &byhand.Entropy{Small: refusing, Large: refusing}, 1), `{"prompt":[1,2,3],"max_tokens":3}`)
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(text), "/v1/completions: 400 Bad Request: no") {
		t.Errorf("a server that refuses: %s: %s", resp.Status, text)
	}
}

// A call is made again for what may pass, as often as it is told, and for nothing else.
func TestRetries(t *testing.T) {
	calls, status := 0, http.StatusServiceUnavailable
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "busy", status)
	}))
	defer srv.Close()
	s := &byhand.Scorer{Endpoint: byhand.Endpoint{URL: srv.URL, Attempts: 4, Backoff: 1}}
	for _, c := range []struct{ status, calls int }{{http.StatusServiceUnavailable, 4}, {http.StatusNotFound, 1}} {
		calls, status = 0, c.status
		_, err := s.Score(t.Context(), []int32{1})
		var refused *byhand.StatusError
		if !errors.As(err, &refused) || refused.Status != c.status || refused.Body != "busy" || calls != c.calls {
			t.Errorf("%v after %d calls, want %d", err, calls, c.calls)
		}
	}
	srv.Close()
	if _, err := s.Score(t.Context(), []int32{1}); err == nil {
		t.Error("no error without a server")
	}
}
