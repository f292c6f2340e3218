package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// The names that the files of a model go by.
const (
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// storedTensor is one tensor of one open file.
type storedTensor struct {
	file *file
	entry
}

// openFiles opens the weight files in dir and returns all their tensors by name. A single file goes before an index, as
// the transformers library has it.
func (m *Model) openFiles(fsys fs.FS, dir, label string) (map[string]storedTensor, error) {
	stored := make(map[string]storedTensor)
	_, err := fs.Stat(fsys, path.Join(dir, singleFile))
	if err == nil {
		return stored, m.openFile(fsys, dir, label, singleFile, stored)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path.Join(label, singleFile), cause(err))
	}
	source := path.Join(label, indexFile)
	text, err := readText(fsys, path.Join(dir, indexFile), source, maxHeader)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: holds neither %s nor %s: %w", label, singleFile, indexFile, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	index, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(index))) {
		if err := m.openFile(fsys, dir, label, shard, stored); err != nil {
			return nil, err
		}
	}
	if err := checkIndex(index, stored, label); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return stored, nil
}

// openFile opens one safetensors file and adds its tensors to stored.
func (m *Model) openFile(fsys fs.FS, dir, label, name string, stored map[string]storedTensor) error {
	f, err := openFile(fsys, path.Join(dir, name), path.Join(label, name))
	if err != nil {
		return err
	}
	m.files = append(m.files, f)
	entries, data, err := parseFile(f.data)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	for _, e := range entries {
		if other, ok := stored[e.name]; ok {
			return fmt.Errorf("%s: tensor %s is in %s too", f.name, clip(e.name), other.file.name)
		}
		stored[e.name] = storedTensor{f, e}
	}
	f.tensors = data
	return nil
}

// tensor is the view of s as a weight of the shape that config.json gives it.
func (s storedTensor) tensor(want []int) (Tensor, error) {
	if !slices.Equal(s.shape, want) {
		return Tensor{}, fmt.Errorf("%s: tensor %s: shape is %v, config.json makes it %v",
			s.file.name, s.name, short(s.shape), want)
	}
	dtype, ok := weightType(s.dtype)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: tensor %s: dtype is %s, wanted %s, %s or %s",
			s.file.name, s.name, s.dtype, F32, F16, BF16)
	}
	data := view(s.file.tensors[s.begin:s.end:s.end], dtype.Size())
	return Tensor{Name: s.name, DType: dtype, Shape: s.shape, Data: data}, nil
}

// parseIndex reads the map from tensor to file.
func parseIndex(text []byte) (map[string]string, error) {
	var whole struct{}
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	w := newWalker(text)
	var index map[string]string
	err := w.object(func(key string) error {
		if key != "weight_map" {
			return w.skip()
		}
		if index != nil {
			return errors.New("weight_map: given twice")
		}
		index = make(map[string]string)
		return w.object(func(name string) error {
			if _, ok := index[name]; ok {
				return fmt.Errorf("weight_map: tensor %s: named twice", clip(name))
			}
			shard, err := w.text()
			if err != nil {
				return fmt.Errorf("weight_map: tensor %s: %w", clip(name), err)
			}
			// A file beside the index, never one elsewhere.
			if !fs.ValidPath(shard) || strings.ContainsAny(shard, `/\`) || shard == "." {
				return fmt.Errorf("weight_map: tensor %s: file %s is no plain file name", clip(name), clip(shard))
			}
			index[name] = shard
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if len(index) == 0 {
		return nil, errors.New("weight_map is missing or empty")
	}
	return index, nil
}

// checkIndex checks that the files hold what the index says, no less and no more.
func checkIndex(index map[string]string, stored map[string]storedTensor, label string) error {
	for _, name := range slices.Sorted(maps.Keys(index)) {
		want := path.Join(label, index[name])
		s, ok := stored[name]
		if !ok {
			return fmt.Errorf("tensor %s: is not in %s", clip(name), want)
		}
		if s.file.name != want {
			return fmt.Errorf("tensor %s: is in %s, not in %s", clip(name), s.file.name, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if _, ok := index[name]; !ok {
			return fmt.Errorf("tensor %s of %s: is not in the index", clip(name), stored[name].file.name)
		}
	}
	return nil
}
