//go:build unix

package workloads

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What isn't a regular file is read once, texts and all.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(path, []byte("{\"question\":\"abc\",\"answer\":\"d\"}\n"), 0) }()
	s := loadFile(t, path, Options{KeepText: true})
	if s.Requests[0].Text != "abc" {
		t.Errorf("text %q", s.Requests[0].Text)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
