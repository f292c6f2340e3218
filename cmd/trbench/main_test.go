package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary stand in for trbench in the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trbench": main})
}

// TestScripts runs testdata/*.txtar: the command line as a user meets it, one file a verb and family of errors.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"interrupt": interrupt,
			"sigkill":   sigkill,
			"json":      jsonAt,
			"bytes":     writeBytes,
		},
	})
}

// exits runs a program and wants the given exit code: exits CODE PROGRAM [ARGUMENT...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitCode(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// interrupt runs a program, sends it SIGINT once a file that the pattern matches has content, and wants the given exit
// code: interrupt CODE PATTERN PROGRAM [ARGUMENT...].
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt CODE PATTERN PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts, endMidway(ts, os.Interrupt, args[1], args[2:])); got != want {
		ts.Fatalf("exit code %d after SIGINT, want %d", got, want)
	}
}

// sigkill runs a program and sends it SIGKILL once a file that the pattern matches has content: sigkill PATTERN PROGRAM
// [ARGUMENT...].
func sigkill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sigkill PATTERN PROGRAM [ARGUMENT...]")
	}
	endMidway(ts, os.Kill, args[0], args[1:])
}

// endMidway runs a program, signals it once a file that the pattern matches has content, and returns how it ended.
func endMidway(ts *testscript.TestScript, signal os.Signal, pattern string, command []string) error {
	program, err := lookPath(ts.Getenv("PATH"), command[0])
	ts.Check(err)
	cmd := exec.Command(program, command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !anyContent(ts.MkAbs(pattern)) {
		select {
		case err := <-ended:
			ts.Fatalf("ended before %s had content: %v", pattern, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
	ts.Check(cmd.Process.Signal(signal))
	return <-ended
}

func lookPath(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return file, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func anyContent(pattern string) bool {
	names, _ := filepath.Glob(pattern) // of a pattern in a script: a malformed one matches nothing and the test says so
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// jsonAt wants a file (or stdout, stderr) to be exactly one JSON document, and the value at a dotted path to be the
// given text: json FILE [PATH VALUE]. A path step is a field, an index, or len for the number of elements; strings are
// compared without their quotes, other values as compact JSON.
func jsonAt(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: json FILE [PATH VALUE]")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("%s: not JSON: %v", args[0], err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("%s: found more behind the first JSON document (%v)", args[0], err)
	}
	if len(args) == 1 {
		return
	}
	got := descend(ts, doc, args[1])
	if (got == args[2]) == neg {
		ts.Fatalf("%s: %s is %s, want %s", args[0], args[1], got, args[2])
	}
}

func descend(ts *testscript.TestScript, doc any, path string) string {
	for _, step := range strings.Split(path, ".") {
		switch v := doc.(type) {
		case map[string]any:
			field, ok := v[step]
			if !ok {
				ts.Fatalf("%s: no field %q", path, step)
			}
			doc = field
		case []any:
			if step == "len" {
				doc = len(v)
				break
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				ts.Fatalf("%s: no element %q among %d", path, step, len(v))
			}
			doc = v[i]
		default:
			ts.Fatalf("%s: %q of a value that has no parts", path, step)
		}
	}
	if s, ok := doc.(string); ok {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	ts.Check(enc.Encode(doc))
	return strings.TrimSpace(b.String())
}

// writeBytes makes a file of a Go string literal without its quotes, for content that an archive can't hold:
// bytes FILE LITERAL.
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes FILE LITERAL")
	}
	content, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
	if err != nil {
		ts.Fatalf("bytes %s: %v", args[0], err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(content), 0o666))
}
