package calibrate

import (
	"os"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// reference opens a file of the reference data, which lies beside the repository; the test is skipped where it doesn't.
func reference(t testing.TB, elements ...string) *os.File {
	t.Helper()
	f, err := os.Open(testutil.Reference(t, elements...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
