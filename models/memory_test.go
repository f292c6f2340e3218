package models

import (
	"errors"
	"strings"
	"testing"
)

func TestMemory(t *testing.T) {
	m := Memory{Bytes: 1_000_000, Origin: "as asked for", Models: []MemoryUse{{"s", 100_000, 300}, {"l", 400_000, 700}}}
	tokens, err := m.KVTokens()
	if err != nil || tokens != 500 {
		t.Errorf("%d tokens, %v; want 500", tokens, err)
	}
	if tokens, err := m.Only(1).KVTokens(); err != nil || tokens != 857 {
		t.Errorf("the large model alone: %d tokens, %v; want 857", tokens, err)
	}
	if want := "1.00 MB for weights and KV (as asked for); s 0.10 MB + l 0.40 MB = 0.50 MB of weights; 300 + 700 bytes of KV a token"; m.String() != want {
		t.Errorf("%s\nwant %s", m, want)
	}
	m.Bytes = 500_999
	_, err = m.KVTokens()
	var full *MemoryError
	if !errors.As(err, &full) || !strings.Contains(err.Error(), "s 0.10 MB + l 0.40 MB = 0.50 MB of weights, 0.50 MB for weights and KV (as asked for): no room for KV") {
		t.Errorf("no room for a token: %v", err)
	}
}
