package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
)

// file is one open weight file, whole.
type file struct {
	name    string // with the folder, as the caller named that
	data    []byte
	tensors []byte // the part of data behind the header
	mapped  bool
}

// openFile maps a file, or reads it where it is none of the operating system's or cannot be mapped.
func openFile(fsys fs.FS, name, label string) (*file, error) {
	handle, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, cause(err))
	}
	defer handle.Close()
	info, err := handle.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, cause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is no regular file", label)
	}
	size := info.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("%s: %d bytes, more than this machine can address", label, size)
	}
	if osFile, ok := handle.(*os.File); ok && size > 0 {
		if data, err := mapFile(osFile, int(size)); err == nil {
			return &file{name: label, data: data, mapped: true}, nil
		}
	}
	data := make([]byte, size)
	if n, err := io.ReadFull(handle, data); err != nil {
		return nil, fmt.Errorf("%s: read %d of %d bytes: %w", label, n, size, cause(err))
	}
	return &file{name: label, data: data}, nil
}

// close unmaps the file.
func (f *file) close() error {
	data := f.data
	f.data, f.tensors = nil, nil
	if !f.mapped || data == nil {
		return nil
	}
	if err := unmapFile(data); err != nil {
		return fmt.Errorf("%s: unmap: %w", f.name, err)
	}
	return nil
}

// cause strips the path that package fs puts before an error: the caller's text has it already, with its folder.
func cause(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// jsonError says where in a file encoding/json failed, what it found and what it wanted.
func jsonError(source string, text []byte, err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s:%d: %s is a JSON %s, wanted %s", source, lineAt(text, e.Offset), e.Field, e.Value, e.Type)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%s:%d: %w", source, lineAt(text, e.Offset), err)
	}
	return fmt.Errorf("%s: %w", source, err)
}

// lineAt is the 1-based line of a byte offset.
func lineAt(text []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(text)))
	return 1 + strings.Count(string(text[:offset]), "\n")
}
