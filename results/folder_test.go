package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// mustCreate makes a folder and closes what it opened at the end of the test.
func mustCreate(t *testing.T, path, run string) *Folder {
	t.Helper()
	f, err := Create(path, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Discard() })
	return f
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	names, err := fileNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// record writes n requests of a point.
func record(t *testing.T, f *Folder, point, n int) *Part {
	t.Helper()
	p, err := f.Part(&Label{Point: point, System: TokenRouter})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := p.Write(&Request{ID: int32(i), OutputTokens: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestFolderFromCreateToFinish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs", "first")
	f := mustCreate(t, path, "abc")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the final name is taken before the end: %v", err)
	}
	record(t, f, 1, 2)
	record(t, f, 0, 1)
	write(t, filepath.Join(f.Dir(), "throughput.svg"), "<svg/>")
	m := &Manifest{Version: "1.0.0", Config: json.RawMessage(`{"seed":1}`), Clock: "virtual", Host: Host{Go: "go1.26"}}
	if err := f.Finish(m, exampleSummary()); err != nil {
		t.Fatal(err)
	}
	want := []string{RequestsFile, ManifestFile, SummaryFile, "throughput.svg"}
	if got := list(t, path); !reflect.DeepEqual(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	var order []string
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, fmt.Sprintf("%d/%d", r.Label.Point, r.Request.ID))
	}
	if got := strings.Join(order, " "); got != "0/0 1/0 1/1" {
		t.Errorf("requests %s, want 0/0 1/0 1/1", got)
	}
	got, err := readManifestFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Run != "abc" || got.Interrupted || got.Go != "go1.26" || !reflect.DeepEqual(got.Files, want) {
		t.Errorf("run.json: %+v", got)
	}
	for _, at := range []string{path, filepath.Join(path, SummaryFile)} {
		if s, err := LoadSummary(at); err != nil || !reflect.DeepEqual(s, exampleSummary()) {
			t.Errorf("summary at %s: %+v, %v", at, s, err)
		}
	}
	if m, s, err := Load(path); err != nil || m.Run != "abc" || s.Run != "0f3a" {
		t.Errorf("loaded %+v, %+v, %v", m, s, err)
	}
	if _, _, err := Load(filepath.Join(path, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("loaded from nowhere: %v", err)
	}
	if left, _ := Partials(path); len(left) != 0 {
		t.Errorf("temporary folders are left: %q", left)
	}
	if f.Dir() != f.final || f.Path() != path || f.Kept() != "" {
		t.Errorf("dir %s, path %s, kept %q", f.Dir(), f.Path(), f.Kept())
	}
	if err := f.Discard(); err != nil || len(list(t, path)) != len(want) {
		t.Errorf("Discard after Finish took the result away: %v", err)
	}
}

// The bytes of requests.jsonl don't depend on how many workers write the points, and in which order they end.
func TestRequestsDoNotDependOnWorkers(t *testing.T) {
	whole := func(workers int) string {
		f := mustCreate(t, filepath.Join(t.TempDir(), "out"), "")
		f.FlushEvery(7)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for point := 11 - w; point >= 0; point -= workers {
					record(t, f, point, 20)
				}
			})
		}
		wg.Wait()
		if err := f.Finish(&Manifest{}, &Summary{}); err != nil {
			t.Fatal(err)
		}
		return read(t, filepath.Join(f.Dir(), RequestsFile))
	}
	one := whole(1)
	if n := strings.Count(one, "\n"); n != 240 {
		t.Errorf("%d lines, want 240", n)
	}
	if whole(3) != one {
		t.Error("three workers and one differ")
	}
}

func TestPartsAreInOrderOfPoints(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"requests.1000.jsonl.part", "requests.999.jsonl.part", "requests.002.jsonl.part", // in
		"requests.2.jsonl.part", "requests.-01.jsonl.part", "requests.jsonl", "requests.x.jsonl.part", // not
	} {
		write(t, filepath.Join(dir, name), "")
	}
	got, err := partNames(dir)
	want := []string{"requests.002.jsonl.part", "requests.999.jsonl.part", "requests.1000.jsonl.part"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestCreateChecksBeforeTheWork(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	foreign := filepath.Join(dir, "foreign")
	broken := filepath.Join(dir, "broken")
	for _, d := range []string{foreign, broken} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(foreign, "thesis.tex"), "")
	write(t, filepath.Join(broken, ManifestFile), `{"schema":"other/1"}`)
	for _, c := range []struct {
		path string
		kind error
		text string
	}{
		{filepath.Join(dir, "file"), ErrUnwritable, "file"},
		{filepath.Join(dir, "file", "below"), ErrUnwritable, "file"},
		{filepath.Join(dir, "nul\x00"), ErrUnwritable, "invalid"},
		{foreign, ErrNotOurs, "has 1 entries (thesis.tex, ...) and is not the result of a run"},
		{broken, ErrNotOurs, `field schema: found "other/1", want "trbench.run/1"`},
	} {
		_, err := Create(c.path, "")
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: got %v, want %v with %q", c.path, err, c.kind, c.text)
		}
	}
	if got := list(t, dir); len(got) != 3 {
		t.Errorf("files after refusals: %q", got)
	}
	if runtime.GOOS != "windows" && os.Geteuid() != 0 {
		locked := filepath.Join(dir, "locked")
		if err := os.Mkdir(locked, 0o555); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(filepath.Join(locked, "out"), ""); !errors.Is(err, ErrUnwritable) {
			t.Errorf("locked: got %v, want %v", err, ErrUnwritable)
		}
	}
}

func TestFinishReplacesAResult(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	finish := func(plots ...string) *Folder {
		f := mustCreate(t, path, "same")
		record(t, f, 0, 1)
		for _, name := range plots {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(f.Dir(), name)), 0o777); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(f.Dir(), name), "")
		}
		if err := f.Finish(&Manifest{}, &Summary{}); err != nil {
			t.Fatal(err)
		}
		return f
	}
	finish("old.svg", "more/deep/old.png")
	if f := finish("new.svg"); f.Kept() != "" {
		t.Errorf("kept %s though every file was ours", f.Kept())
	}
	want := []string{"new.svg", RequestsFile, ManifestFile, SummaryFile}
	if got := list(t, path); !reflect.DeepEqual(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	write(t, filepath.Join(path, "notes.md"), "what I saw")
	f := finish()
	if got := list(t, f.Kept()); !reflect.DeepEqual(got, []string{"notes.md", ManifestFile}) {
		t.Errorf("kept %q: %q, want the notes and run.json", f.Kept(), got)
	}
	if got := list(t, path); len(got) != 3 {
		t.Errorf("files %q, want run.json and summary.json: there were no requests", got)
	}
}

// A result of another config is never lost: it may have taken hours.
func TestFinishKeepsAnotherConfigsResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for i, run := range []string{"old", "new"} {
		f := mustCreate(t, path, run)
		record(t, f, 0, i+1)
		if err := f.Finish(&Manifest{}, &Summary{Run: run}); err != nil {
			t.Fatal(err)
		}
		if run == "old" {
			continue
		}
		m, s, err := Load(f.Kept())
		if err != nil || m.Run != "old" || s.Run != "old" || len(list(t, f.Kept())) != 3 {
			t.Errorf("kept %q: %+v, %v", f.Kept(), m, err)
		}
	}
	if m, _, err := Load(path); err != nil || m.Run != "new" {
		t.Errorf("in place: %+v, %v", m, err)
	}
}

func TestFinishIntoAnEmptyFolderAndThroughALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Mkdir(target, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	for range 2 {
		f := mustCreate(t, link, "")
		if err := f.Finish(&Manifest{}, &Summary{}); err != nil {
			t.Fatal(err)
		}
		if f.Kept() != "" {
			t.Errorf("kept %s", f.Kept())
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if got := list(t, target); len(got) != 2 {
		t.Errorf("files %q, want three", got)
	}
}

// What came to the final name during the run is not overwritten, and the work is not lost.
func TestFinishRefusesWhatIsNotOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f := mustCreate(t, path, "")
	record(t, f, 0, 3)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "thesis.tex"), "")
	if err := f.Finish(&Manifest{}, &Summary{}); !errors.Is(err, ErrNotOurs) {
		t.Fatalf("got %v, want %v", err, ErrNotOurs)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Finish(&Manifest{}, &Summary{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(read(t, filepath.Join(path, RequestsFile)), "\n"); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// A kill at any moment leaves a folder from which every flushed request comes back.
func TestRecover(t *testing.T) {
	whole := string(AppendJSON(nil, &Label{Point: 0, System: TokenRouter}, &Request{OutputTokens: 1}))
	for _, c := range []struct {
		name   string
		killed func(t *testing.T, f *Folder)
		want   int
	}{
		{"while running", func(t *testing.T, f *Folder) {}, 5},
		{"in the middle of a line", func(t *testing.T, f *Folder) {
			name := filepath.Join(f.Dir(), partName(1))
			write(t, name, read(t, name)+strings.Repeat("x", 5000))
		}, 5},
		{"in the middle of the first line", func(t *testing.T, f *Folder) {
			write(t, filepath.Join(f.Dir(), partName(2)), whole[:20])
		}, 5},
		{"while joining", func(t *testing.T, f *Folder) {
			write(t, filepath.Join(f.Dir(), RequestsFile+".new"), whole)
		}, 5},
		{"while removing parts", func(t *testing.T, f *Folder) {
			write(t, filepath.Join(f.Dir(), RequestsFile),
				read(t, filepath.Join(f.Dir(), partName(0)))+read(t, filepath.Join(f.Dir(), partName(1))))
			if err := os.Remove(filepath.Join(f.Dir(), partName(0))); err != nil {
				t.Fatal(err)
			}
		}, 5},
		{"before publishing", func(t *testing.T, f *Folder) {
			if err := errors.Join(f.join(), f.Describe(&Manifest{Seed: 9})); err != nil {
				t.Fatal(err)
			}
		}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			dead := mustCreate(t, path, "abc")
			if err := dead.Describe(&Manifest{Seed: 9}); err != nil {
				t.Fatal(err)
			}
			record(t, dead, 0, 2)
			record(t, dead, 1, 3)
			c.killed(t, dead)

			left, err := Partials(path)
			if err != nil || len(left) != 1 {
				t.Fatalf("partials %q, %v", left, err)
			}
			f, m, err := Recover(left[0])
			if err != nil {
				t.Fatal(err)
			}
			if m.Run != "abc" || m.Seed != 9 || !m.Interrupted {
				t.Errorf("run.json: %+v", m)
			}
			n := 0
			for _, err := range f.Records() {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != c.want {
				t.Errorf("%d requests, want %d", n, c.want)
			}
			if err := f.Finish(m, &Summary{}); err != nil {
				t.Fatal(err)
			}
			if got := list(t, path); !reflect.DeepEqual(got, []string{RequestsFile, ManifestFile, SummaryFile}) {
				t.Errorf("files %q", got)
			}
			if n := strings.Count(read(t, filepath.Join(path, RequestsFile)), "\n"); n != c.want {
				t.Errorf("%d lines, want %d", n, c.want)
			}
		})
	}
	if _, _, err := Recover(t.TempDir()); err == nil || !strings.Contains(err.Error(), partialMark) {
		t.Errorf("not a temporary folder: %v", err)
	}
}

func TestPartFlushes(t *testing.T) {
	f := mustCreate(t, filepath.Join(t.TempDir(), "out"), "")
	f.FlushEvery(3)
	p := record(t, f, 0, 5)
	name := filepath.Join(f.Dir(), partName(0))
	lines := func() int { return strings.Count(read(t, name), "\n") }
	if n := lines(); n != 3 {
		t.Errorf("%d lines after five requests, want 3", n)
	}
	if err := p.Flush(); err != nil || lines() != 5 {
		t.Errorf("%d lines after Flush, want 5: %v", lines(), err)
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if err := p.Write(&Request{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if _, err := f.Part(&Label{Point: -1}); err == nil {
		t.Error("a part of point -1")
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f := mustCreate(t, filepath.Join(dir, "out"), "")
	record(t, f, 0, 1)
	if err := f.Discard(); err != nil || len(list(t, dir)) != 0 {
		t.Errorf("left: %q, %v", list(t, dir), err)
	}
}

func TestTwoRunsOfOneConfigDoNotMeet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	a, b := mustCreate(t, path, ""), mustCreate(t, path, "")
	record(t, a, 0, 1)
	record(t, b, 0, 2)
	for i, f := range []*Folder{a, b} {
		if err := f.Finish(&Manifest{}, &Summary{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(read(t, filepath.Join(path, RequestsFile)), "\n"); n != i+1 {
			t.Errorf("%d requests, want %d", n, i+1)
		}
	}
}

func TestManifestRoundTrip(t *testing.T) {
	at := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	want := &Manifest{
		Schema: ManifestSchema, Run: "abc", Version: "1.0.0", CommandLine: []string{"trbench", "run"},
		Config: json.RawMessage(`{"seed":1}`), Seed: 1, Clock: "wall", StartedAt: &at, Interrupted: true,
		Host: Host{Commit: "c0ffee", Go: "go1.26", OS: "linux", Arch: "arm64", CPU: "EPYC", Cores: 2},
		Workloads: []WorkloadRecord{{
			Name: "gsm8k", Dataset: "embedded", Count: 200, Skips: []Skip{{"prompt < 4 tokens", 3}}, SHA256: "ab",
			Notes: []string{"x"},
		}},
		Latency: []string{"a100: measured"}, Warnings: []string{}, Files: []string{},
	}
	var buf bytes.Buffer
	if err := WriteManifest(&buf, want); err != nil {
		t.Fatal(err)
	}
	text := buf.String()
	for _, line := range []string{`  "gpu": null`, `  "finished_at": null,`, `  "warnings": [],`, `  "cpu": "EPYC",`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	got, err := ReadManifest("run.json", &buf)
	if err != nil {
		t.Fatal(err)
	}
	var config bytes.Buffer
	if err := json.Compact(&config, got.Config); err != nil {
		t.Fatal(err)
	}
	got.Config = config.Bytes()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := WriteManifest(&buf, &Manifest{Config: json.RawMessage("{")}); err == nil {
		t.Error("a config that is not JSON was written")
	}
}

func TestDescribeHost(t *testing.T) {
	h := DescribeHost()
	if h.Go != runtime.Version() || h.OS != runtime.GOOS || h.Arch != runtime.GOARCH || h.Cores < 1 || h.GPU != "" {
		t.Errorf("%+v", h)
	}
}

func BenchmarkPart(b *testing.B) {
	for _, every := range []int{1, 256} {
		b.Run(fmt.Sprintf("flush=%d", every), func(b *testing.B) {
			f, err := Create(filepath.Join(b.TempDir(), "out"), "")
			if err != nil {
				b.Fatal(err)
			}
			f.FlushEvery(every)
			p, err := f.Part(&exampleLabel)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := p.Write(&exampleRequest); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Discard(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
