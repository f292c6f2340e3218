package results

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Names of the files in a result folder.
const (
	ManifestFile = "run.json"
	SummaryFile  = "summary.json"
	RequestsFile = "requests.jsonl"
	TraceFile    = "trace.json"
)

// Why an output folder can't be used. Test with errors.Is; the error that wraps it names the path.
var (
	ErrUnwritable = errors.New("output folder can't be written")
	ErrNotOurs    = errors.New("output folder holds other files")
)

// partialMark separates the final name from the process number in the name of an unfinished folder.
const partialMark = ".partial-"

// replacedMark does so in the name of a result that was replaced and not removed, or not yet.
const replacedMark = ".replaced-"

// Folder is a result folder while it is being made.
//
// It lives under a temporary name beside the final one, PATH.partial-PID, and holds run.json and one
// requests.NNN.jsonl.part a point. Finish joins the parts in the order of points, so that the bytes of requests.jsonl
// don't depend on the number of workers, and renames the folder. A process that is killed leaves the temporary folder
// with every request that was flushed; Recover takes it up again. Goroutines may open parts, and each write its own;
// all else is for one.
type Folder struct {
	path  string // the final name as it was given
	final string // absolute, links followed
	dir   string // the temporary name; final once published
	run   string // hash of the config
	every int    // lines between flushes of a part
	kept  string

	mu    sync.Mutex // guards parts
	parts []*Part
}

// Create makes the temporary folder of a result that will be called path, before any work is done. run is the hash of
// the config. The error is ErrUnwritable where path or the folder around it can't be written, and ErrNotOurs where path
// exists and is neither an empty folder nor a result.
func Create(path, run string) (*Folder, error) {
	final, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	if err := replaceable(final); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	if err := movable(final); err != nil {
		return nil, fmt.Errorf("%w: %s can't be replaced by a finished one (a mount point?): name a folder in it: %w",
			ErrUnwritable, path, err)
	}
	dir, err := mkdirFresh(final + partialMark + strconv.Itoa(os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	f := &Folder{path: filepath.Clean(path), final: final, dir: dir, run: run, every: 1}
	if err := f.Describe(&Manifest{}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnwritable, err), f.Discard())
	}
	return f, nil
}

// resolve makes path absolute and follows links, so that what is renamed is the folder and not a link to it.
func resolve(path string) (string, error) {
	final, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(final); err == nil {
		return target, nil
	}
	return final, nil
}

// movable returns nil where path is free or can be renamed: tried out, there and back.
func movable(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside, err := moveAside(path)
	if err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// moveAside renames path to a fresh name beside it.
func moveAside(path string) (string, error) {
	aside, err := mkdirFresh(path + replacedMark + strconv.Itoa(os.Getpid()))
	if err != nil {
		return "", err
	}
	if err := os.Remove(aside); err != nil { // the name is what was wanted
		return "", err
	}
	return aside, os.Rename(path, aside)
}

// mkdirFresh makes the first of name, name-1, name-2, ... that doesn't exist.
func mkdirFresh(name string) (string, error) {
	fresh := name
	for i := 1; ; i++ {
		err := os.Mkdir(fresh, 0o777)
		if !errors.Is(err, fs.ErrExist) {
			return fresh, err
		}
		fresh = name + "-" + strconv.Itoa(i)
	}
}

// replaceable returns nil where path is free, an empty folder, or a result.
func replaceable(path string) error {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	case len(entries) == 0:
		return nil
	}
	if _, err := readManifestFile(path); err != nil {
		return fmt.Errorf("%w: %s has %d entries (%s, ...) and is not the result of a run: %w",
			ErrNotOurs, path, len(entries), entries[0].Name(), err)
	}
	return nil
}

func readManifestFile(dir string) (*Manifest, error) {
	name := filepath.Join(dir, ManifestFile)
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadManifest(name, file)
}

// Path is the folder's final name.
func (f *Folder) Path() string { return f.path }

// Dir is where the folder is now: plots and traces are written into it before Finish.
func (f *Folder) Dir() string { return f.dir }

// FlushEvery sets after how many requests a part opened from now on reaches the file: 1, the default, loses none to a
// kill and costs a system call a request.
func (f *Folder) FlushEvery(requests int) { f.every = max(requests, 1) }

// Describe writes run.json as that of an interrupted run, so that a kill leaves a folder which says what it was.
func (f *Folder) Describe(m *Manifest) error {
	early := *m
	early.Interrupted = true
	return f.writeManifest(&early)
}

func (f *Folder) writeManifest(m *Manifest) error {
	full := *m
	full.Run = cmp.Or(full.Run, f.run)
	return writeFile(filepath.Join(f.dir, ManifestFile), func(w io.Writer) error { return WriteManifest(w, &full) })
}

// writeFile replaces a file as a whole: a reader sees the old one or the new one.
func writeFile(name string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", content.Bytes(), 0o666); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Part opens the file that takes the requests of one point. label is not copied, and must not change.
func (f *Folder) Part(label *Label) (*Part, error) {
	if label.Point < 0 {
		return nil, fmt.Errorf("point %d: want 0 or more", label.Point)
	}
	name := filepath.Join(f.dir, partName(label.Point))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	p := &Part{file: file, label: label, every: f.every}
	f.mu.Lock()
	f.parts = append(f.parts, p)
	f.mu.Unlock()
	return p, nil
}

const partPrefix, partSuffix = "requests.", ".jsonl.part"

func partName(point int) string { return fmt.Sprintf("%s%03d%s", partPrefix, point, partSuffix) }

// partNames lists the parts in dir by point.
func partNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	type numbered struct {
		point int
		name  string
	}
	var found []numbered
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), partPrefix)
		if !ok {
			continue
		}
		if number, ok = strings.CutSuffix(number, partSuffix); !ok {
			continue
		}
		if point, err := strconv.Atoi(number); err == nil && point >= 0 && partName(point) == e.Name() {
			found = append(found, numbered{point, e.Name()})
		}
	}
	slices.SortFunc(found, func(a, b numbered) int { return cmp.Compare(a.point, b.point) })
	names := make([]string, len(found))
	for i, n := range found {
		names[i] = n.name
	}
	return names, nil
}

// Records reads back what was flushed so far, in the order of requests.jsonl.
func (f *Folder) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		names, err := partNames(f.dir)
		if err != nil {
			yield(Record{}, err)
			return
		}
		if joined(f.dir) {
			names = []string{RequestsFile}
		}
		for _, name := range names {
			file, err := os.Open(filepath.Join(f.dir, name))
			if err != nil {
				yield(Record{}, err)
				return
			}
			for record, err := range ReadRequests(file.Name(), file) {
				if !yield(record, err) || err != nil {
					file.Close()
					return
				}
			}
			file.Close()
		}
	}
}

// Finish closes the parts, joins them, writes summary.json and run.json, and gives the folder its final name. A result
// that had the name is moved aside until the rename has succeeded. If it is of the same config, it is then removed, but
// for what no run wrote in it; that, and the result of another config, stay in the folder that Kept names. After an
// error the temporary folder is still there, and Recover or another Finish may follow.
func (f *Folder) Finish(m *Manifest, s *Summary) error {
	if err := f.closeParts(); err != nil {
		return err
	}
	if err := f.join(); err != nil {
		return err
	}
	err := writeFile(filepath.Join(f.dir, SummaryFile), func(w io.Writer) error { return WriteSummary(w, s) })
	if err != nil {
		return err
	}
	full := *m
	if full.Files, err = fileNames(f.dir); err != nil {
		return err
	}
	if err := f.writeManifest(&full); err != nil {
		return err
	}
	return f.publish()
}

func (f *Folder) closeParts() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// join makes requests.jsonl of the parts. It gets its name when it is whole, and only then the parts go, so that a kill
// in between costs nothing.
func (f *Folder) join() error {
	names, err := partNames(f.dir)
	if err != nil {
		return err
	}
	if len(names) == 0 && !joined(f.dir) && f.parts == nil {
		return nil // a result that keeps no requests
	}
	if !joined(f.dir) {
		if err := f.concatenate(names, filepath.Join(f.dir, RequestsFile)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// joined says that dir has its requests.jsonl: parts beside it are already in it.
func joined(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, RequestsFile))
	return err == nil
}

func (f *Folder) concatenate(names []string, whole string) (err error) {
	out, err := os.Create(whole + ".new")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err == nil {
			err = os.Rename(whole+".new", whole)
		}
	}()
	for _, name := range names {
		part, err := os.Open(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		_, err = io.Copy(out, part)
		if err := errors.Join(err, part.Close()); err != nil {
			return err
		}
	}
	return nil
}

// fileNames lists the files in dir and below, sorted, with slashes.
func fileNames(dir string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	slices.Sort(names)
	return names, err
}

// publish renames the folder onto its final name.
func (f *Folder) publish() error {
	if err := replaceable(f.final); err != nil { // it may have come into being during the run
		return err
	}
	aside := ""
	if _, err := os.Stat(f.final); err == nil {
		if aside, err = moveAside(f.final); err != nil {
			return err
		}
	}
	if err := os.Rename(f.dir, f.final); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, f.final))
		}
		return err
	}
	f.dir = f.final
	if aside == "" {
		return nil
	}
	if old, err := readManifestFile(aside); err == nil && old.Run != f.run {
		f.kept = aside
		return nil
	}
	if err := removeResult(aside); err != nil {
		f.kept = aside
		return fmt.Errorf("the new result is in place; the one it replaced is left in %s: %w", aside, err)
	}
	if _, err := os.Stat(aside); err == nil {
		f.kept = aside
	}
	return nil
}

// removeResult removes the files of a replaced result that its run.json lists, and the folders that are empty then.
func removeResult(dir string) error {
	m, err := readManifestFile(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(dir) // it was an empty folder
	}
	if err != nil {
		return err
	}
	folders := []string{dir}
	for _, name := range m.Files {
		name = filepath.FromSlash(name)
		if !filepath.IsLocal(name) || name == ManifestFile {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for sub := filepath.Dir(name); sub != "."; sub = filepath.Dir(sub) {
			folders = append(folders, filepath.Join(dir, sub))
		}
	}
	if rest, err := fileNames(dir); err != nil || len(rest) > 1 {
		return err // the reader's own files stay, with the run.json that explains them
	}
	if err := os.Remove(filepath.Join(dir, ManifestFile)); err != nil {
		return err
	}
	// A longer name is deeper, so it goes first.
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, folder := range slices.Compact(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Kept names the folder that holds what Finish did not remove of a result that had the name; "" where there is none.
func (f *Folder) Kept() string { return f.kept }

// Discard removes the temporary folder and all that is in it, for a run that failed before it had a result. After
// Finish it does nothing.
func (f *Folder) Discard() error {
	err := f.closeParts()
	if f.dir == f.final {
		return err
	}
	return errors.Join(err, os.RemoveAll(f.dir))
}
