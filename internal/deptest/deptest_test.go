package deptest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/trbench/trbench"

// TestModule holds this module against the rules.
func TestModule(t *testing.T) {
	found, err := Check(module, os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		_, err = os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir, err = filepath.Dir(dir), nil
	}
	t.Fatalf("no go.mod above the test: %v", err)
	return ""
}

// TestReasons: a rule without a reason is a habit, and of two rows for one package neither would hold.
func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if r.why == "" {
			t.Errorf("row %s has no reason", r.pkg)
		}
		if seen[r.pkg] {
			t.Errorf("two rows for %s", r.pkg)
		}
		seen[r.pkg] = true
	}
	for _, n := range nevers() {
		if n.why == "" {
			t.Errorf("never %v to %v has no reason", n.from, n.to)
		}
	}
	for _, b := range bans() {
		if b.why == "" {
			t.Errorf("ban in %v has no reason", b.pkgs)
		}
	}
}

func TestCheck(t *testing.T) {
	imports := func(paths ...string) string {
		text := "package p\n"
		for _, p := range paths {
			text += "import _ \"" + p + "\"\n"
		}
		return text
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string // part of each breach
	}{
		{"allowed", map[string]string{
			"sim/a.go":            imports(module+"/engine/core", "time"),
			"engine/core/a.go":    imports(module + "/engine/step"),
			"engine/step/a.go":    "package p\nimport \"time\"\nvar D = time.Second\n",
			"engine/run.go":       "package p\nimport \"time\"\nfunc F() { go func() { time.Sleep(1) }() }\n",
			"cmd/trbench/main.go": imports(module+"/sim", module+"/engine", "os"),
		}, nil},
		{"import upwards", map[string]string{"engine/step/a.go": imports("fmt", module+"/models")},
			[]string{"engine/step/a.go:3: engine/step imports models: "}},
		{"never", map[string]string{"sim/a.go": imports(module + "/engine"), "engine/a.go": "package p\n"},
			[]string{"sim imports engine: ", "sim -> engine: never: "}},
		{"never, over others", map[string]string{
			"sim/a.go":                 imports(module + "/models/latency"),
			"models/latency/a.go":      imports(module + "/engine/backend/fake"),
			"engine/backend/fake/a.go": "package p\n",
		}, []string{
			"models/latency imports engine/backend/fake: ",
			"sim -> models/latency -> engine/backend/fake: never: ",
		}},
		{"no row", map[string]string{"engine/extra/a.go": "package p\n"},
			[]string{"engine/extra: no rule for this package: add a row to rows in internal/deptest/rules.go"}},
		{"the root", map[string]string{"a.go": "package p\n", "engine/step/a.go": imports(module)},
			[]string{".: no rule", "engine/step imports .: "}},
		{"wall clock", map[string]string{"engine/core/a.go": "package p\nimport \"time\"\nvar now = time.Now\n"},
			[]string{"engine/core/a.go:3: engine/core uses time.Now: "}},
		{"wall clock by another name", map[string]string{
			"workloads/trace/a.go": "package p\nimport t \"time\"\nfunc F() { t.Sleep(1) }\n",
		}, []string{"workloads/trace uses time.Sleep: "}},
		{"wall clock without a name", map[string]string{
			"sim/des/a.go": "package p\nimport . \"time\"\nvar x = Now()\n",
		}, []string{"sim/des uses time.*: "}},
		{"goroutine", map[string]string{"engine/dispatch/a.go": "package p\nfunc F() {\n\tgo F()\n}\n"},
			[]string{"engine/dispatch/a.go:3: engine/dispatch starts a goroutine: "}},
		{"input and output", map[string]string{"engine/route/a.go": imports("os", "os/exec", "net/http")},
			[]string{"imports os: ", "imports os/exec: ", "imports net/http: "}},
		{"another platform", map[string]string{"engine/kv/a_windows.go": "//go:build windows\n\n" + imports("syscall")},
			[]string{"engine/kv imports syscall: "}},
		{"random numbers", map[string]string{"models/signal/a.go": imports("math/rand/v2")},
			[]string{"models/signal imports math/rand/v2: "}},
		{"tests are free", map[string]string{
			"engine/core/a_test.go":       imports("os", module+"/sim") + "func F() { go F() }\n",
			"engine/core/testdata/p/a.go": imports("os"),
			"third/go.mod":                "module third\n",
			"third/a.go":                  imports(module + "/engine"),
			"engine/core/_scratch/a.go":   imports("os"),
			"engine/core/.hidden/p/a.go":  imports("os"),
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fstest.MapFS{"go.mod": {Data: []byte("module " + module + "\n")}}
			for name, text := range c.files {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			found, err := Check(module, tree)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(c.want) {
				t.Fatalf("found %d breaches, want %d:\n%s", len(found), len(c.want), strings.Join(found, "\n"))
			}
			for i, w := range c.want {
				if !strings.Contains(found[i], w) {
					t.Errorf("found %q, want it to contain %q", found[i], w)
				}
			}
		})
	}
}

func TestCheckRefusesWhatIsNoGo(t *testing.T) {
	if _, err := Check(module, fstest.MapFS{"sim/a.go": {Data: []byte("pakage p")}}); err == nil {
		t.Error("no error for a file that can't be parsed")
	}
}
