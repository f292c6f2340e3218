package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Partials lists the temporary folders that runs towards path left behind, killed or still running, sorted by name.
func Partials(path string) ([]string, error) {
	path = filepath.Clean(path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), filepath.Base(path)+partialMark) {
			found = append(found, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return found, nil
}

// IsPartial says that path has the name of an unfinished run's folder.
func IsPartial(path string) bool {
	_, _, ok := cutPartial(path)
	return ok
}

// PartialPID is the number of the process that made the unfinished folder at path.
func PartialPID(path string) (int, bool) {
	_, number, ok := cutPartial(path)
	if !ok {
		return 0, false
	}
	number, _, _ = strings.Cut(number, "-") // a second folder of one process has a count behind it
	pid, err := strconv.Atoi(number)
	return pid, err == nil
}

// cutPartial splits PATH.partial-PID.
func cutPartial(path string) (final, number string, ok bool) {
	base := filepath.Base(path)
	mark := strings.LastIndex(base, partialMark)
	if mark <= 0 {
		return "", "", false
	}
	return filepath.Join(filepath.Dir(path), base[:mark]), base[mark+len(partialMark):], true
}

// Recover takes up the temporary folder of a run that was killed: it cuts off a line that was not written to its end
// and returns the folder and the manifest of the run. Summarise Records, then Finish. The run must not be going on.
//
// What a kill loses is what only the process had: requests not flushed, gaps between tokens (but for each request's
// longest), switch costs, batches, and the exact tokens of the steady window.
func Recover(dir string) (*Folder, *Manifest, error) {
	dir, err := resolve(dir)
	if err != nil {
		return nil, nil, err
	}
	final, _, ok := cutPartial(dir)
	if !ok {
		return nil, nil, fmt.Errorf("%s: not the folder of an unfinished run: want a name with %q", dir, partialMark)
	}
	m, err := readManifestFile(dir)
	if err != nil {
		return nil, nil, err
	}
	f := &Folder{path: final, final: final, dir: dir, run: m.Run, every: 1}
	names, err := partNames(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if err := cutTornLine(filepath.Join(dir, name)); err != nil {
			return nil, nil, err
		}
	}
	// Half-written whole files: what they were made of is still there.
	for _, name := range []string{RequestsFile, SummaryFile, ManifestFile} {
		if err := os.Remove(filepath.Join(dir, name+".new")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
	}
	return f, m, nil
}

// cutTornLine cuts a file after its last newline.
func cutTornLine(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for end := info.Size(); end > 0; {
		start := max(end-int64(len(block)), 0)
		piece := block[:end-start]
		if _, err := file.ReadAt(piece, start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 {
			return file.Truncate(start + int64(i) + 1)
		}
		end = start
	}
	return file.Truncate(0)
}
