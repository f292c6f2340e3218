package command

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sweepArgs is a sweep of some seconds.
func sweepArgs(out string, more ...string) []string {
	return append([]string{
		"sweep", "--latency", "paper", "--workload", "fixed:50,200", "--requests", "150", "--concurrency", "4,8",
		"--axis", "threshold=1..6", "--axis", "switch_rate=0.1..0.5:0.1", "--repeat", "2", "--plot", "none", "--progress", "none", "--out", out,
	}, more...)
}

// TestMain lets the test binary be the program itself, so that a test can kill it.
func TestMain(m *testing.M) {
	if os.Getenv("SWEEP_TEST_PROGRAM") != "" {
		os.Exit(Main(os.Args[1:], io.Discard, os.Stderr))
	}
	os.Exit(m.Run())
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A sweep that is killed midway, by a signal that nobody can catch, and resumed, gives the bytes of one that was not:
// with one worker or two, and although the kill tore the journal's last line.
func TestKilledSweepResumes(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	if code := Main(sweepArgs(whole, "--workers", "2"), io.Discard, os.Stderr); code != 0 {
		t.Fatalf("exit %d", code)
	}
	killed := filepath.Join(dir, "killed")
	cmd := exec.Command(os.Args[0], sweepArgs(killed, "--workers", "1")...)
	cmd.Env = append(os.Environ(), "SWEEP_TEST_PROGRAM=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(killed+unfinished, journalFile)
	for range 30000 { // until some runs are kept
		if data, err := os.ReadFile(journal); err == nil && bytes.Count(data, []byte("\n")) >= 5 {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Skip("it ended before it was killed")
	}
	kept := bytes.Count(read(t, journal), []byte("\n"))
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"job":3,"repe`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if code := Main(sweepArgs(killed), io.Discard, io.Discard); code != 2 {
		t.Errorf("starting over an interrupted sweep: exit %d, want 2", code)
	}
	resume := []string{"sweep", "--resume", killed, "--plot", "none", "--progress", "none", "--workers", "2"}
	if code := Main(resume, io.Discard, os.Stderr); code != 0 {
		t.Fatalf("resume: exit %d", code)
	}
	for _, name := range []string{"summary.json", sweepFile, thresholdFile} {
		if strings.HasSuffix(name, ".yaml") {
			if _, err := os.Stat(filepath.Join(whole, name)); err != nil {
				continue // with a second axis there is no table
			}
		}
		if !bytes.Equal(read(t, whole, name), read(t, killed, name)) {
			t.Errorf("%s of the resumed sweep differs from the uninterrupted one's", name)
		}
	}
	if _, err := os.Stat(killed + unfinished); !os.IsNotExist(err) {
		t.Errorf("the working folder is still there: %v", err)
	}
	t.Logf("killed after %d runs", kept)
}
