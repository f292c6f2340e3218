package byhand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// Endpoint is a server that is called over HTTP. Its zero Client and Attempts have defaults.
type Endpoint struct {
	URL      string        // "http://127.0.0.1:8000"
	Client   *http.Client  // nil: http.DefaultClient
	Attempts int           // of a call, first one included; 0: 3
	Backoff  time.Duration // before the second attempt, doubled for each further one, with jitter; 0: 50 ms
}

// StatusError is a reply that isn't 200.
type StatusError struct {
	URL    string
	Status int
	Body   string // its first bytes
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", e.URL, e.Status, http.StatusText(e.Status), e.Body)
}

// passing says that the same call may succeed later.
func (e *StatusError) passing() bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Pool is a client that keeps a connection to each server for each of n requests: a call a token can't afford to dial.
func Pool(n int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, n
	return &http.Client{Transport: t}
}

// retry makes a call again while it fails for a reason that may pass.
func (e *Endpoint) retry(ctx context.Context, call func() error) error {
	attempts, backoff := e.Attempts, e.Backoff
	if attempts == 0 {
		attempts = 3
	}
	if backoff == 0 {
		backoff = 50 * time.Millisecond
	}
	for {
		err := call()
		var status *StatusError
		attempts--
		if err == nil || attempts <= 0 || ctx.Err() != nil || errors.As(err, &status) && !status.passing() {
			return err
		}
		select {
		case <-time.After(backoff/2 + rand.N(backoff)):
			backoff *= 2
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open posts in and returns the body of the reply, which the caller closes.
func (e *Endpoint) open(ctx context.Context, path string, in any) (io.ReadCloser, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := e.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return nil, &StatusError{URL: e.URL + path, Status: resp.StatusCode, Body: string(bytes.TrimSpace(text))}
	}
	return resp.Body, nil
}

// post makes a call and reads its reply into out.
func (e *Endpoint) post(ctx context.Context, path string, in, out any) error {
	return e.retry(ctx, func() error {
		body, err := e.open(ctx, path, in)
		if err != nil {
			return err
		}
		defer body.Close()
		data, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("%s%s: %w", e.URL, path, err)
		}
		if err := json.Unmarshal(data, out); err != nil {
			return fmt.Errorf("%s%s: %w", e.URL, path, err)
		}
		return nil
	})
}
