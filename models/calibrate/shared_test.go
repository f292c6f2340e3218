package calibrate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// reference opens a file of the reference data, which lies beside the repository; the test is skipped where it doesn't.
func reference(t testing.TB, elements ...string) *os.File {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(root)
		if up == root {
			t.Fatal("no go.mod above the test")
		}
		root = up
	}
	f, err := os.Open(filepath.Join(append([]string{root, "..", "shared", "data"}, elements...)...))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no reference data beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
