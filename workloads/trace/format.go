package trace

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/internal/suggest"
)

// Format is the form of a dataset file.
type Format string

const (
	Auto      Format = "auto"      // told from the first entry's fields, or from the CSV header
	ShareGPT  Format = "sharegpt"  // conversations[].value; prompt = turn 0, output = turn 1
	Alpaca    Format = "alpaca"    // instruction, input, output; prompt = Alpaca's template
	GSM8K     Format = "gsm8k"     // question, answer
	Questions Format = "questions" // question, prompt or turns[0]; no output
	Azure     Format = "azure"     // CSV: TIMESTAMP (a date), ContextTokens, GeneratedTokens
	Mooncake  Format = "mooncake"  // timestamp (ms), input_length, output_length
	BurstGPT  Format = "burstgpt"  // CSV: Timestamp (s), Request tokens, Response tokens
	Lengths   Format = "lengths"   // CSV or JSON: prompt_tokens, output_tokens[, arrival_s]
)

// Formats lists the forms that a file can be read as, Auto first.
func Formats() []Format {
	return []Format{Auto, ShareGPT, Alpaca, GSM8K, Questions, Azure, Mooncake, BurstGPT, Lengths}
}

// HasText says that a form's entries hold text, whose tokens are counted, and not token counts.
func (f Format) HasText() bool {
	return f == ShareGPT || f == Alpaca || f == GSM8K || f == Questions
}

// ParseFormat reads a form's name; case is ignored, and no name is Auto.
func ParseFormat(name string) (Format, error) {
	if name == "" {
		return Auto, nil
	}
	known := make([]string, 0, len(Formats()))
	for _, f := range Formats() {
		if strings.EqualFold(name, string(f)) {
			return f, nil
		}
		known = append(known, string(f))
	}
	return "", unknown("format", name, known)
}

// ParseTokenizer reads a family's name; case is ignored, and no name is the default family.
func ParseTokenizer(name string) (Tokenizer, error) {
	if name == "" {
		return Llama31, nil
	}
	known := make([]string, 0, len(Tokenizers()))
	for _, t := range Tokenizers() {
		if strings.EqualFold(name, string(t)) {
			return t, nil
		}
		known = append(known, string(t))
	}
	return "", unknown("tokenizer", name, known)
}

func unknown(what, name string, known []string) error {
	hint := ""
	if near, ok := suggest.Nearest(name, known); ok {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Errorf("unknown %s %q%s (known: %s)", what, name, hint, strings.Join(known, ", "))
}

// objectForm is the form whose fields an object has, and false where no form's.
func objectForm(fields []string) (Format, bool) {
	have := make(map[string]bool, len(fields))
	for _, f := range fields {
		have[f] = true
	}
	switch {
	case have["conversations"] || have["conversation"]:
		return ShareGPT, true
	case have["instruction"] && have["output"]:
		return Alpaca, true
	case have["question"] && have["answer"]:
		return GSM8K, true
	case have["input_length"] && have["output_length"]:
		return Mooncake, true
	case have["prompt_tokens"] && have["output_tokens"], have["input_toks"] && have["output_toks"]:
		return Lengths, true
	case have["question"] || have["prompt"] || have["turns"]:
		return Questions, true
	}
	return "", false
}

// wantedObjects says what the entries of a JSON file may be.
const wantedObjects = "wanted conversations (sharegpt), instruction and output (alpaca), question and answer " +
	"(gsm8k), input_length and output_length (mooncake), prompt_tokens and output_tokens (lengths), or question, " +
	"prompt or turns (questions)"
