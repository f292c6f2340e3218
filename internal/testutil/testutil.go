// Package testutil is what tests of several packages need.
package testutil

import (
	"os"
	"path/filepath"
	"testing"
)

// Reference is the path of a file or folder of the reference data, which lies beside the repository; the test is skipped
// where it does not.
func Reference(tb testing.TB, parts ...string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Skip("not in a repository")
		}
		dir = up
	}
	path := filepath.Join(append([]string{dir, "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		tb.Skip("no reference data: ", err)
	}
	return path
}
