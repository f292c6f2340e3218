package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxFile bounds the files that are read, bytes; Llama 3's tokenizer.json has 9 MB.
const maxFile = 256 << 20

// configFile is tokenizer_config.json.
type configFile struct {
	BOS          tokenName    `json:"bos_token"`
	EOS          tokenName    `json:"eos_token"`
	ChatTemplate chatTemplate `json:"chat_template"`
}

// tokenName is an added token by its spelling, alone or as the content of an object; "" for null.
type tokenName string

func (n *tokenName) UnmarshalJSON(text []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if strings.HasPrefix(string(text), "{") {
		err := json.Unmarshal(text, &object)
		*n = tokenName(object.Content)
		return err
	}
	return json.Unmarshal(text, (*string)(n))
}

// chatTemplate is a template's Jinja text, alone or as the one named default in a list.
type chatTemplate string

func (c *chatTemplate) UnmarshalJSON(text []byte) error {
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if !strings.HasPrefix(string(text), "[") {
		return json.Unmarshal(text, (*string)(c))
	}
	err := json.Unmarshal(text, &list)
	for _, t := range list {
		if t.Name == "default" {
			*c = chatTemplate(t.Template)
		}
	}
	return err
}

// generationFile is generation_config.json.
type generationFile struct {
	EOS tokenIDs `json:"eos_token_id"`
}

// tokenIDs is a token id, a list of them, or null.
type tokenIDs []int32

func (t *tokenIDs) UnmarshalJSON(text []byte) error {
	if strings.HasPrefix(string(text), "[") {
		return json.Unmarshal(text, (*[]int32)(t))
	}
	var id *int32
	if err := json.Unmarshal(text, &id); err != nil || id == nil {
		return err
	}
	*t = tokenIDs{*id}
	return nil
}

// open is Open; label stands for the folder in errors.
func open(fsys fs.FS, dir, label string) (*Tokenizer, error) {
	f := folder{fsys, dir, label}
	var main tokenizerFile
	size, err := f.readJSON("tokenizer.json", &main)
	if err != nil {
		return nil, err
	}
	t, err := main.tokenizer(size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path("tokenizer.json"), err)
	}
	var config configFile
	if _, err := f.readJSON("tokenizer_config.json", &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// Newer writers keep the template in a file of its own.
	jinja, err := f.read("chat_template.jinja")
	if err == nil {
		config.ChatTemplate = chatTemplate(jinja)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var generation generationFile
	if _, err := f.readJSON("generation_config.json", &generation); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := t.configure(config); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path("tokenizer_config.json"), err)
	}
	for _, id := range generation.EOS {
		if err := t.addEOS(id); err != nil {
			return nil, fmt.Errorf("%s: eos_token_id: %w", f.path("generation_config.json"), err)
		}
	}
	return t, nil
}

// folder is where the files are; label stands for it in errors.
type folder struct {
	fsys       fs.FS
	dir, label string
}

func (f folder) path(name string) string { return path.Join(f.label, name) }

func (f folder) read(name string) ([]byte, error) {
	info, err := fs.Stat(f.fsys, path.Join(f.dir, name))
	if err != nil {
		return nil, f.wrap(name, err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %d bytes, wanted at most %d", f.path(name), info.Size(), maxFile)
	}
	text, err := fs.ReadFile(f.fsys, path.Join(f.dir, name))
	if err != nil {
		return nil, f.wrap(name, err)
	}
	return text, nil
}

// wrap puts the path that the caller knows in place of the one that package fs gives.
func (f folder) wrap(name string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("%s: %w", f.path(name), err)
}

// readJSON reads a file into dst and returns its size, bytes.
func (f folder) readJSON(name string, dst any) (size int, err error) {
	text, err := f.read(name)
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(text, dst); err != nil {
		return 0, fmt.Errorf("%s: %w", f.path(name), jsonError(err))
	}
	return len(text), nil
}

// jsonError says where encoding/json failed, what it found and what it wanted.
func jsonError(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("byte %d: %s is a JSON %s, wanted %s", e.Offset, e.Field, e.Value, e.Type)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", e.Offset, err)
	}
	return err
}

// configure takes what tokenizer_config.json says.
func (t *Tokenizer) configure(c configFile) error {
	if c.BOS != "" {
		id, ok := t.ID(string(c.BOS))
		if !ok {
			return fmt.Errorf("bos_token: %q is no added token of tokenizer.json", c.BOS)
		}
		t.bos = id
	}
	if c.EOS != "" {
		id, ok := t.ID(string(c.EOS))
		if !ok {
			return fmt.Errorf("eos_token: %q is no added token of tokenizer.json", c.EOS)
		}
		if err := t.addEOS(id); err != nil {
			return err
		}
	}
	t.template, t.defaultSystem = recognise(string(c.ChatTemplate))
	markers := t.template.markers()
	if t.template == Llama3 || t.template == Llama31 {
		markers = append(markers, "<|begin_of_text|>")
	}
	for _, m := range markers {
		if _, ok := t.ID(m); !ok {
			return fmt.Errorf("chat template %s: %s is no added token of tokenizer.json", t.template, m)
		}
	}
	if end := t.template.turnEnd(); end != "" {
		id, _ := t.ID(end)
		return t.addEOS(id)
	}
	return nil
}

// addEOS adds an end of output, once.
func (t *Tokenizer) addEOS(id int32) error {
	if len(t.vocab.bytes(id)) == 0 {
		return fmt.Errorf("is %d, which no token has", id)
	}
	if !slices.Contains(t.eos, id) {
		t.eos = append(t.eos, id)
	}
	return nil
}
