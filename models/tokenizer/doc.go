// Package tokenizer turns text into tokens and back, for models whose tokenizer.json is a byte-level BPE: Llama 3 and
// later, Qwen 2 and later, GPT-2. Ids are those of the tokenizers library of Hugging Face, token for token.
//
// A text goes through five stages: added tokens such as <|im_end|> are cut out (added.go), the rest is normalised (NFC,
// Qwen only), cut into words (split.go), and each word's bytes are merged by rank (bpe.go) within a vocabulary
// (vocabulary.go). Decoding is a table look-up; decoder.go does it as tokens arrive, whole characters at a time.
// template.go writes a conversation the way a model family was trained on it.
//
// One difference from the library: a run of more than 30 combining marks is normalised to Unicode's stream-safe form,
// which puts a joiner (U+034F) after every 30.
//
// A Tokenizer never changes after Open, so that goroutines may share it. The package reads tokenizer.json,
// tokenizer_config.json, generation_config.json and chat_template.jinja of one folder, and nothing else.
//
// Read tokenizer.go first; file.go and folder.go say what of those files is supported.
package tokenizer
