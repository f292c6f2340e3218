package experiment

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trbench/trbench/models/demo"
	"github.com/trbench/trbench/models/tokenizer"
)

// modelFolders writes the demo pair as a user's folders, without a tokenizer.
func modelFolders(t *testing.T) (parent, small, large string) {
	t.Helper()
	parent = t.TempDir()
	small, large = filepath.Join(parent, "a"), filepath.Join(parent, "b")
	if err := os.CopyFS(small, demo.Small()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(large, demo.Large()); err != nil {
		t.Fatal(err)
	}
	return parent, small, large
}

// giveTokenizer writes the demo pair's tokenizer into dir, with a chat template if one is given.
func giveTokenizer(t *testing.T, dir, template string) {
	t.Helper()
	text, err := os.ReadFile("../../../models/demo/pair/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"tokenizer.json": string(text), "tokenizer_config.json": `{"eos_token":"<|endoftext|>"}`}
	if template != "" {
		files["chat_template.jinja"] = template
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

const chatML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

// The tokenizer is the large model's, else the small one's, else that of the folder which both are in.
func TestTokenizerOfFolders(t *testing.T) {
	parent, small, large := modelFolders(t)
	l, err := OpenLocal(small, large)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.text(false); Code(err) != ExitTarget || !strings.Contains(err.Error(), "a, b: no tokenizer.json") {
		t.Errorf("without a tokenizer: %v, exit %d", err, Code(err))
	}
	for _, dir := range []string{parent, small, large} {
		giveTokenizer(t, dir, "")
		if l, err = OpenLocal(small, large); err != nil {
			t.Fatal(err)
		}
		if err := l.text(false); err != nil {
			t.Errorf("tokenizer in %s: %v", dir, err)
		}
		if err := l.text(true); Code(err) != ExitUsage || !strings.Contains(err.Error(), "has no chat template") {
			t.Errorf("chat without a template: %v, exit %d", err, Code(err))
		}
	}
}

// With chat, a prompt is a user's message in the template, and the end of the assistant's turn ends the output.
func TestChat(t *testing.T) {
	_, small, large := modelFolders(t)
	giveTokenizer(t, large, chatML)
	l, err := OpenLocal(small, large)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := l.encode("Tom has 3 apples.", true)
	if err != nil {
		t.Fatal(err)
	}
	want, err := l.Tokenizer.Chat([]tokenizer.Message{{Role: tokenizer.User, Content: "Tom has 3 apples."}})
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v, want %v (%v)", ids, want, err)
	}
	plain, err := l.encode("Tom has 3 apples.", false)
	if err != nil || len(plain) >= len(ids) {
		t.Errorf("without chat %d tokens, with it %d (%v)", len(plain), len(ids), err)
	}
	end, ok := l.Tokenizer.ID("<|im_end|>")
	if !ok || !slices.Contains(l.ends(), end) {
		t.Errorf("the end of a turn, %d, is not among the ends %v", end, l.ends())
	}

	data := filepath.Join(t.TempDir(), "q.jsonl")
	if err := os.WriteFile(data, []byte(`{"question":"Tom has 3 apples. How many?","answer":"3 #### 3"}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	c := Defaults()
	for _, kv := range [][2]string{
		{"engine", "cpu"}, {"small", small}, {"large", large}, {"data", data}, {"chat", "true"}, {"algorithm", "entropy"},
		{"system", "tokenrouter"}, {"concurrency", "1"}, {"requests", "1"}, {"out", filepath.Join(t.TempDir(), "out")},
	} {
		if err := c.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewPlan(context.Background(), "chat", c)
	if err != nil {
		t.Fatal(err)
	}
	heard := &tap{}
	if _, err := p.serve(context.Background(), &p.Points[0], 1, &recorder{tap: heard}); err != nil {
		t.Fatal(err)
	}
	ids, _ = l.encode("Tom has 3 apples. How many?", true)
	if len(heard.requests) != 1 || int(heard.requests[0].PromptTokens) != len(ids) {
		t.Errorf("requests %+v, want one with a prompt of %d tokens", heard.requests, len(ids))
	}
	c.Data, c.Workload = nil, []string{"gsm8k"}
	if _, err := NewPlan(context.Background(), "chat", c); Code(err) != ExitUsage || !strings.Contains(err.Error(), "random token ids, and no text") {
		t.Errorf("chat without text: %v", err)
	}
}
