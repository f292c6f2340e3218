package trace

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever the bytes: no panic, an error that is a DataError, counts that add up, and the same result from another
// split of the same bytes.
func FuzzRead(f *testing.F) {
	for i, text := range []string{
		`[{"conversations":[{"from":"human","value":"hello"},{"from":"gpt","value":"hi"}]}]`,
		`[{"conversations":"[{\"value\":\"a\"},\"{\\\"value\\\":\\\"b\\\"}\"]"}]`,
		`[{"instruction":"abc","input":"x","output":"de"},{"instruction":"abc","output":""}]`,
		"{\"question\":\"a\",\"answer\":\"b\"}\r\n\n{\"question\":1}",
		`{"turns":["a",["b"]]}`,
		"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n",
		`{"timestamp": 27, "input_length": 6758, "output_length": 500, "hash_ids": [0, [1]]}`,
		"Timestamp,Request tokens,Response tokens\n5,472,18\n1e3,\"1\",2.0\n",
		"\xef\xbb\xbfprompt_tokens,output_tokens,arrival_s\n1,2,.5\n3,4,1e9\n\"a\nb\",1,1\n",
		"[{\"question\":\"a\",\"question\":\"b\"}\xff",
		"{\"prompt_tokens\":1e3,\"output_tokens\":-0}",
		"[[[[[[[[[[[[[[[[",
	} {
		f.Add([]byte(text), byte(i))
		f.Add([]byte(text), byte(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, form byte) {
		formats := Formats()
		o := Options{
			Format: formats[int(form)%len(formats)], PromptsOnly: form >= 128,
			Keep: func(n int) bool { return n%2 == 0 },
		}
		strict, err := Read(bytes.NewReader(data), "f", o)
		var e *DataError
		if err != nil && (!errors.As(err, &e) || e.File != "f" || e.Msg == "" || e.Line < 0) {
			t.Fatalf("error %#v, want a DataError of the file", err)
		}
		problems := 0
		o.Problem = func(e *DataError) bool { problems++; return true }
		got, lenient := Read(&chunked{data: data, sizes: []int{1, 7, 3}}, "f", o)
		if err == nil && (lenient != nil || problems > 0 || !cmp.Equal(strict, got)) {
			t.Fatalf("strict %v\nlenient %v, %d problems, %v", strict, got, problems, lenient)
		}
		if err != nil && lenient == nil && problems == 0 {
			t.Fatalf("strict %v, lenient none", err)
		}
		if got != nil {
			check(t, got)
		}
	})
}

func check(t *testing.T, got *Trace) {
	total := len(got.Entries) + got.Malformed
	for _, s := range got.Skipped {
		total += s.Count
	}
	if total != got.Total {
		t.Fatalf("%d entries, %d malformed, skipped %v: want a total of %d", len(got.Entries), got.Malformed,
			got.Skipped, got.Total)
	}
	last := 0
	for _, e := range got.Entries {
		switch {
		case e.Prompt < 0 || e.Prompt > MaxTokens || e.Output < 0 || e.Output > MaxTokens:
			t.Fatalf("lengths out of bounds: %+v", e)
		case e.Arrival < 0 || e.Arrival > 2*MaxArrival || !got.HasArrivals && e.Arrival != 0:
			t.Fatalf("arrival out of bounds: %+v", e)
		case e.Number <= last || e.Number > got.Total:
			t.Fatalf("entry number out of order: %+v", e)
		case e.Text != "" && e.Number%2 != 0:
			t.Fatalf("text kept unasked: %+v", e)
		}
		last = e.Number
	}
}
