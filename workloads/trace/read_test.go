package trace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// letters counts a token a byte, so that a table can say what it expects.
type letters struct{}

func (letters) Count(text string) int { return len(text) }

const (
	plainFrame = len(alpacaPlain) + len(alpacaResponse)
	inputFrame = len(alpacaInput) + len(alpacaContext) + len(alpacaResponse)
)

// row is an entry of a table: number, prompt, output.
func row(number, prompt, output int) Entry {
	return Entry{Number: number, Prompt: prompt, Output: output}
}

func at(e Entry, d time.Duration) Entry {
	e.Arrival = d
	return e
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text string
		format     Format // to ask for; the one told by Auto is want.Format
		prompts    bool
		want       Trace
	}{{
		name: "sharegpt",
		text: `[{"id":"a","conversations":[{"from":"human","value":"hello"},{"from":"gpt","value":"hi"},{"x":[{}]}]},
			{"id":"b","conversations":[{"from":"human","value":"?"}]},
			{"id":"c","conversations":[]},
			{"conversations":[{"from":"gpt","value":"abc","extra":{"value":1}},{"value":""}],"id":"d"}]`,
		want: Trace{
			Format: ShareGPT, Total: 4, HasOutputs: true,
			Entries: []Entry{row(1, 5, 2), row(4, 3, 0)},
			Skipped: []Skip{{oneTurn, 2}},
			Notes: []string{"1 conversations begin with the model's turn; it is taken as the prompt, as vLLM and " +
				"SGLang do: roles are not checked"},
		},
	}, {
		name: "sharegpt, prompts only, one object a line",
		text: "{\"conversations\":[{\"value\":\"hello\"}]}\r\n\r\n" +
			"{\"conversation\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
		prompts: true,
		want:    Trace{Format: ShareGPT, Total: 2, HasOutputs: true, Entries: []Entry{row(1, 5, 0), row(2, 2, 0)}},
	}, {
		name: "sharegpt, JSON inside strings",
		text: `[{"conversations":"[{\"from\":\"human\",\"value\":\"abc\"},{\"value\":\"d\"}]"},
			{"conversations":["{\"value\":\"ab\"}",{"value":"cde"}]}]`,
		want: Trace{
			Format: ShareGPT, Total: 2, HasOutputs: true, Entries: []Entry{row(1, 3, 1), row(2, 2, 3)},
			Notes: []string{"2 conversations were JSON inside a string, and were decoded"},
		},
	}, {
		name: "alpaca",
		text: "\xef\xbb\xbf [\n{\"instruction\":\"abc\",\"input\":\"\",\"output\":\"de\"},\n" +
			"{\"output\":\"\",\"instruction\":\"abc\",\"input\":\"four\",\"text\":7},\n" +
			"{\"instruction\":\"a\",\"output\":\"b\"}]\n",
		want: Trace{
			Format: Alpaca, Total: 3, HasOutputs: true,
			Entries: []Entry{row(1, 3+plainFrame, 2), row(2, 7+inputFrame, 0), row(3, 1+plainFrame, 1)},
		},
	}, {
		name: "gsm8k",
		text: "{\"question\": \"1+1?\", \"answer\": \"two #### 2\"}\n{\"answer\":\"\",\"question\":\"\"}\n",
		want: Trace{Format: GSM8K, Total: 2, HasOutputs: true, Entries: []Entry{row(1, 4, 10), row(2, 0, 0)}},
	}, {
		name: "questions",
		text: "{\"question_id\":1,\"turns\":[\"abc\",\"d\"]}\n\n{\"prompt\":\"ab\"}\n{\"question\":\"a\"}",
		want: Trace{Format: Questions, Total: 3, Entries: []Entry{row(1, 3, 0), row(2, 2, 0), row(3, 1, 0)}},
	}, {
		name:   "questions of a gsm8k file",
		text:   `{"question": "1+1?", "answer": "2"}`,
		format: Questions,
		want:   Trace{Format: Questions, Total: 1, Entries: []Entry{row(1, 4, 0)}},
	}, {
		name: "azure",
		text: "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n" +
			"2023-11-16 18:15:46.6805901,1,2\r\n2023-11-16 18:15:50,5,6",
		want: Trace{
			Format: Azure, Total: 3, HasOutputs: true, HasArrivals: true,
			Entries: []Entry{
				row(1, 374, 44), at(row(2, 1, 2), 100*time.Nanosecond), at(row(3, 5, 6), 3_319_410*time.Microsecond),
			},
		},
	}, {
		name: "azure 2024, out of order",
		text: "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:01+00:00,3,4\n" +
			"2024-05-10 00:00:00.5+00:00,1,2\n",
		want: Trace{
			Format: Azure, Total: 2, HasOutputs: true, HasArrivals: true,
			Entries: []Entry{at(row(1, 3, 4), 500*time.Millisecond), row(2, 1, 2)},
		},
	}, {
		name: "mooncake",
		text: `{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}` + "\n" +
			`{"timestamp": 27.5, "input_length": 1, "output_length": 2, "hash_ids": []}`,
		want: Trace{
			Format: Mooncake, Total: 2, HasOutputs: true, HasArrivals: true,
			Entries: []Entry{row(1, 6758, 500), at(row(2, 1, 2), 27500*time.Microsecond)},
			Notes:   []string{"shared prefixes (hash_ids) are not read: every prompt counts as new"},
		},
	}, {
		name: "burstgpt, columns moved",
		text: "Model,Response tokens,Timestamp,Log Type,Request tokens\n" +
			"GPT-4,18,5,\"Conversation, log\",472\nx,0,6.25,y,3.0\n",
		want: Trace{
			Format: BurstGPT, Total: 2, HasOutputs: true, HasArrivals: true,
			Entries: []Entry{at(row(1, 472, 18), 5*time.Second), at(row(2, 3, 0), 6250*time.Millisecond)},
		},
	}, {
		name: "lengths",
		text: "\n\n id , Output-Tokens ,prompt tokens\na, 2 ,1\n\nb,4,3\n",
		want: Trace{Format: Lengths, Total: 2, HasOutputs: true, Entries: []Entry{row(1, 1, 2), row(2, 3, 4)}},
	}, {
		name: "lengths with arrivals, moved",
		text: "arrival_s,output_tokens,prompt_tokens\n0.000000001,2,1\n1e1,4,3\n",
		want: Trace{
			Format: Lengths, Total: 2, HasOutputs: true, HasArrivals: true,
			Entries: []Entry{at(row(1, 1, 2), 1), at(row(2, 3, 4), 10*time.Second)},
		},
	}, {
		name: "lengths as objects, in LLMServingSim's spelling",
		text: `[{"input_toks":2358,"output_toks":531,"arrival_time_ns":46926808,"input_tok_ids":[1,2]}]`,
		want: Trace{
			Format: Lengths, Total: 1, HasOutputs: true, HasArrivals: true,
			Entries: []Entry{at(row(1, 2358, 531), 46926808)},
		},
	}} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Format: c.format, Counter: letters{}, PromptsOnly: c.prompts}
			got, err := Read(strings.NewReader(c.text), "f", o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, *got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			// The same bytes in another split, under the form's own name, give the same.
			o.Format = got.Format
			again, err := Read(&chunked{data: []byte(c.text), sizes: []int{1, 2, 3}}, "f", o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, again); d != "" {
				t.Errorf("split otherwise: %s", d)
			}
		})
	}
}

// Every kind of bad input, with the whole message.
func TestBadInput(t *testing.T) {
	const turn = `{"value":"a"}`
	for _, c := range []struct {
		text   string
		want   string
		format Format
	}{
		// The file.
		{"", `f: found an empty file, wanted a dataset`, Auto},
		{" \n\r\n\t", `f: found an empty file, wanted a dataset`, Auto},
		{"\xef\xbb\xbf", `f: found an empty file, wanted a dataset`, Auto},
		{"[]", `f: found an empty array, wanted a dataset`, Auto},
		{"[]", `f: found no entries, wanted at least one (alpaca)`, Alpaca},
		{"prompt_tokens,output_tokens\n", `f: found no entries, wanted at least one (lengths)`, Auto},
		{"\x1f\x8b\x08\x00", `f: found a gzip file, wanted plain text: decompress it first`, Auto},
		{"PAR1....", `f: found a Parquet file, wanted JSON, JSON lines or CSV: export it first`, Auto},
		{"\xff\xfe[\x00", `f: found text in UTF-16, wanted UTF-8`, Auto},
		{"[\n{\"question\":\"a\xff\"}]", `f: line 2: entry 1: found the byte 0xff, wanted text in UTF-8`, Auto},
		{
			"{\"question\":\"a\"}\n{\"question\":\"\xe2\x82",
			`f: line 2: entry 2: found the byte 0xe2, wanted text in UTF-8`, Auto,
		},
		{
			"hello world\n",
			`f: line 1: can't tell the form: found the columns hello world; wanted a JSON file, or the columns ` +
				`prompt_tokens and output_tokens (lengths), TIMESTAMP, ContextTokens and GeneratedTokens (azure), or ` +
				`Timestamp, Request tokens and Response tokens (burstgpt)`, Auto,
		},
		{"\n[{\"a\":1}]", `f: line 2: entry 1: can't tell the form: found the fields a; ` + wantedObjects, Auto},
		{`[[1]]`, `f: line 1: entry 1: found an array, wanted an object: one entry`, Auto},
		{`hello`, `f: line 1: entry 1: not JSON: invalid character 'h' looking for beginning of value`, GSM8K},

		// JSON.
		{
			`[{"instruction":"a","output":"b"},` + "\n" + `{"instruction":"a"`,
			`f: line 2: entry 2: truncated: the text ends inside an object or array`, Auto,
		},
		{
			`[{"instruction":"a","output":"b"}`,
			`f: line 1: entry 2: truncated: the text ends inside an object or array`, Auto,
		},
		{
			`[{"instruction":"a","output":"b`,
			`f: line 1: entry 1: truncated: the text ends inside an object or array`, Auto,
		},
		{
			`[{"instruction":"a","output":"b"}` + "\n" + `{"instruction":"a"}]`,
			`f: line 2: entry 2: not JSON: invalid character '{' after array element`, Auto,
		},
		{
			`[{"instruction":"a","output":"b"}]` + "\n[]",
			`f: line 2: found an array behind the array, wanted the end of the file`, Auto,
		},
		{`[{"instruction":"a","output":"b"},3]`, `f: line 1: entry 2: found the number 3, wanted an object`, Auto},
		{
			`{"question":"a","answer":"b"} {}`,
			`f: line 1: entry 1: found an object behind the object, wanted one object a line`, Auto,
		},
		{
			"{\"question\":\"a\",\"answer\":\"b\"}\n\n{\"question\":\n\"a\"}",
			`f: line 3: entry 2: truncated: the line ends inside an object or array, wanted one object a line`, Auto,
		},
		{
			`{"question":"a","answer":7}`,
			`f: line 1: entry 1: field "answer": found the number 7, wanted a string`, Auto,
		},
		{`{"question":null,"answer":"a"}`, `f: line 1: entry 1: field "question": found null, wanted a string`, Auto},
		{
			`{"question":"a","answer":"b","question":"c"}`,
			`f: line 1: entry 1: field "question": found it twice in one object, wanted it once`, Auto,
		},
		{
			"[{\"instruction\":\"a\",\"output\":\"b\"},\n{\"instruction\":\"a\",\n\"output\":\"b\",\n\"x\":1,\"x\":2}]",
			`f: line 4: entry 2: field "x": found it twice in one object, wanted it once`, Auto,
		},
		{
			"[{\"instruction\":\"a\",\"output\":\"b\"},\n{\"instruction\":\"a\"}]",
			`f: line 2: entry 2: field "output": not found among instruction`, Auto,
		},
		{
			`{"question":"a","prompt":"b"}`,
			`f: line 1: entry 1: field "prompt": found question and prompt, wanted one of them`, Auto,
		},
		{`{"turns":[]}`, `f: line 1: entry 1: field "turns": found an empty array, wanted an array of strings`, Auto},
		{`{"turns":"a"}`, `f: line 1: entry 1: field "turns": found the string "a", wanted an array of strings`, Auto},

		// ShareGPT.
		{`[{"id":1}]`, `f: line 1: entry 1: field "conversations": not found among id`, ShareGPT},
		{
			`[{"conversations":null}]`,
			`f: line 1: entry 1: field "conversations": found null, wanted an array of turns`, Auto,
		},
		{
			`[{"conversations":"hello"}]`,
			`f: line 1: entry 1: field "conversations": found the string "hello", wanted an array of turns`, Auto,
		},
		{
			`[{"conversations":"[{\"value\":\"a\"}"}]`,
			`f: line 1: entry 1: field "conversations": truncated: the text ends inside an object or array`, Auto,
		},
		{
			`[{"conversations":[` + turn + `,"hi"]}]`,
			`f: line 1: entry 1: field "conversations[1].value": found the string "hi", wanted a turn with ` +
				`from and value`, Auto,
		},
		{
			`[{"conversations":[` + turn + `,{"from":"gpt"}]}]`,
			`f: line 1: entry 1: field "conversations[1].value": not found among from`, Auto,
		},
		{
			`[{"conversations":[{"value":["a"]},` + turn + `]}]`,
			`f: line 1: entry 1: field "conversations[0].value": found an array, wanted a string`, Auto,
		},
		{
			`[{"conversations":[{"value":"a","content":"b"}]}]`,
			`f: line 1: entry 1: field "conversations[0].value": found value and content, wanted one of them`, Auto,
		},
		{
			`[{"conversations":[],"conversation":[]}]`,
			`f: line 1: entry 1: field "conversation": found conversations and conversation, wanted one of them`, Auto,
		},

		// Numbers.
		{
			"prompt_tokens,output_tokens\n1,2\n-3,4\n",
			`f: line 3: entry 2: field "prompt_tokens": found "-3", wanted a whole number from 0 to 16777216`, Auto,
		},
		{
			"prompt_tokens,output_tokens\n1,NaN\n",
			`f: line 2: entry 1: field "output_tokens": found "NaN", wanted a whole number from 0 to 16777216`, Auto,
		},
		{
			"prompt_tokens,output_tokens\n1,99999999999999999999\n",
			`f: line 2: entry 1: field "output_tokens": found "99999999999999999999", wanted a whole ` +
				`number from 0 to 16777216`, Auto,
		},
		{
			"prompt_tokens,output_tokens\n1.5,1\n",
			`f: line 2: entry 1: field "prompt_tokens": found "1.5", wanted a whole number from 0 to 16777216`, Auto,
		},
		{
			"prompt_tokens,output_tokens\n0x10,1\n",
			`f: line 2: entry 1: field "prompt_tokens": found "0x10", wanted a whole number from 0 to 16777216`, Auto,
		},
		{
			"prompt_tokens,output_tokens\n,1\n",
			`f: line 2: entry 1: field "prompt_tokens": found "", wanted a whole number from 0 to 16777216`, Auto,
		},
		{
			"prompt_tokens,output_tokens,arrival_s\n1,2,-0.5\n",
			`f: line 2: entry 1: field "arrival_s": found "-0.5", wanted a number of seconds from 0 to ` +
				`315360000 (ten years)`, Auto,
		},
		{
			"prompt_tokens,output_tokens,arrival_s\n1,2,1e300\n",
			`f: line 2: entry 1: field "arrival_s": found "1e300", wanted a number of seconds from 0 to ` +
				`315360000 (ten years)`, Auto,
		},
		{
			"prompt_tokens,prompt_tokens,output_tokens\n1,2,3\n",
			`f: line 1: field "prompt_tokens": found it twice in the header, wanted it once`, Auto,
		},
		{"prompt_tokens,output_tokens\n1\n", `f: line 2: entry 1: not a CSV row: wrong number of fields`, Auto},
		{
			"prompt_tokens,output_tokens\n1,2\n\"1,2\n",
			`f: line 3: entry 2: not a CSV row: extraneous or missing " in quoted-field`, Auto,
		},
		{
			"prompt_tokens,arrival_s\n1,2\n",
			`f: line 1: field "output_tokens": not found among the columns prompt_tokens, arrival_s`, Lengths,
		},
		{
			"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n",
			`f: line 2: entry 1: field "TIMESTAMP": found "yesterday", wanted a date as ` +
				`2023-11-16 18:15:46.6805900`, Auto,
		},
		{
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:00,1,2\n1823-01-01 00:00:00,1,2\n",
			`f: line 3: entry 2: field "TIMESTAMP": found "1823-01-01 00:00:00", wanted a date within ten ` +
				`years of the first, 2023-01-01`, Auto,
		},
		{
			`{"timestamp":1,"input_length":"5","output_length":1}`,
			`f: line 1: entry 1: field "input_length": found the string "5", wanted a number`, Auto,
		},
		{
			`{"input_length":5,"output_length":1}`,
			`f: line 1: entry 1: field "timestamp": not found among input_length, output_length`, Auto,
		},
		{
			`{"timestamp":1e400,"input_length":5,"output_length":1}`,
			`f: line 1: entry 1: field "timestamp": found "1e400", wanted a number of milliseconds from 0 ` +
				`to 315360000000 (ten years)`, Auto,
		},
		{
			`[{"prompt_tokens":1,"output_tokens":2,"arrival_s":0},{"prompt_tokens":1,"output_tokens":2}]`,
			`f: line 1: entry 2: field "arrival_s": found no arrival, wanted one: the first entry has one`, Auto,
		},
		{
			`[{"prompt_tokens":1,"output_tokens":2},{"prompt_tokens":1,"output_tokens":2,"arrival_s":0}]`,
			`f: line 1: entry 2: field "arrival_s": found an arrival, wanted none: the first entry has none`, Auto,
		},
	} {
		_, err := Read(strings.NewReader(c.text), "f", Options{Format: c.format, Counter: letters{}})
		var e *DataError
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v, want a DataError: %s", c.text, err, c.want)
		} else if err.Error() != c.want {
			t.Errorf("%q:\n     %s\nwant %s", c.text, err, c.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadFile(filepath.Join(dir, "none.json"), Options{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "none.json: no such file") {
		t.Errorf("missing file: %v", err)
	}
	if _, err = ReadFile(dir, Options{}); err == nil || err.Error() != dir+": found a directory, wanted a file" {
		t.Errorf("directory: %v", err)
	}
	path := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(path, []byte("prompt_tokens,output_tokens\n1,x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var e *DataError
	_, err = ReadFile(path, Options{})
	if !errors.As(err, &e) || e.File != path || e.Line != 2 || e.Field != "output_tokens" {
		t.Errorf("bad field: %#v", err)
	}
	if _, err = ReadFile(filepath.Join(path, "b"), Options{}); !errors.As(err, &e) {
		t.Errorf("path through a file: %v", err)
	}
}

// Behind a bad entry reading goes on where the caller wants it to; each bad entry is counted once.
func TestProblems(t *testing.T) {
	const good = `{"question":"ab","answer":"c"}`
	for _, c := range []struct {
		name, text string
		problems   int
		entries    []Entry
		total      int
		malformed  int
	}{
		{"array", `[{"question":"a","answer":[{"b":[1]}]},7,[[]],` + "\n" + good + `,{"question":1}]`,
			4, []Entry{row(4, 2, 1)}, 5, 4},
		{"lines", good + "\n{\"question\"\n{]\n" + good + "\n",
			2, []Entry{row(1, 2, 1), row(4, 2, 1)}, 4, 2},
		{"table", "prompt_tokens,output_tokens\n1,2\nx,1\n1\n3,4\n",
			2, []Entry{row(1, 1, 2), row(4, 3, 4)}, 4, 2},
		{"truncated", "[" + good + `,{"question":7,"answer":`,
			2, []Entry{row(1, 2, 1)}, 2, 1},
		{"behind the array", "[" + good + "] x",
			1, []Entry{row(1, 2, 1)}, 1, 0},
		{"bad byte", good + "\n{\"question\":\"\xff\"}\n" + good,
			1, []Entry{row(1, 2, 1)}, 2, 1},
	} {
		var problems []*DataError
		got, err := Read(strings.NewReader(c.text), "f", Options{
			Format: formatOf(c.name), Counter: letters{},
			Problem: func(e *DataError) bool { problems = append(problems, e); return true },
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(problems) != c.problems || got.Total != c.total || got.Malformed != c.malformed {
			t.Errorf("%s: %d entries, %d malformed, problems %v", c.name, got.Total, got.Malformed, problems)
		}
		if d := cmp.Diff(c.entries, got.Entries); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	stopped := 0
	got, err := Read(strings.NewReader("prompt_tokens,output_tokens\n1,x\n1,y\n"), "f", Options{
		Problem: func(*DataError) bool { stopped++; return false },
	})
	if err != nil || stopped != 1 || got.Total != 1 {
		t.Errorf("stopped after %d problems, %v, %v", stopped, got, err)
	}
}

func formatOf(name string) Format {
	if name == "table" {
		return Lengths
	}
	return GSM8K
}

func TestKeep(t *testing.T) {
	text := "{\"question\":\"one\",\"answer\":\"1\"}\n{\"question\":\"two\",\"answer\":\"2\"}\n"
	got, err := Read(strings.NewReader(text), "f", Options{Keep: func(n int) bool { return n == 2 }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Entries[0].Text != "" || got.Entries[1].Text != "two" {
		t.Errorf("texts %q and %q, want the second only", got.Entries[0].Text, got.Entries[1].Text)
	}
}

func TestNames(t *testing.T) {
	for _, f := range Formats() {
		if got, err := ParseFormat(strings.ToUpper(string(f))); got != f || err != nil {
			t.Errorf("format %s: %s, %v", f, got, err)
		}
	}
	if f, err := ParseFormat(""); f != Auto || err != nil {
		t.Errorf("no format: %s, %v", f, err)
	}
	if _, err := ParseFormat("sharegp"); err == nil || !strings.Contains(err.Error(), "did you mean sharegpt?") {
		t.Errorf("misspelt format: %v", err)
	}
	if _, err := ParseTokenizer("lama31"); err == nil || !strings.Contains(err.Error(), "did you mean llama31?") {
		t.Errorf("misspelt tokenizer: %v", err)
	}
}
