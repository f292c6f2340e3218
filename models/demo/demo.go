// Package demo carries a pair of small models inside the binary, with their tokenizer and prompts for them, so that the
// engine runs for real on a machine that has no model and no network. README.md says what the models are and are not.
//
// Read this file, then prompts.go.
package demo

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/trbench/trbench/models/tokenizer"
)

//go:embed pair
var files embed.FS

// TrainedPositions is how many tokens of prompt and output the models were trained on; what they write beyond is noise,
// though their configuration allows 1,024.
const TrainedPositions = 384

// Small is the folder of the small model, gsm-s: 250,944 parameters. Open it by weights.OpenFS(demo.Small(), ".").
func Small() fs.FS { return folder("pair/gsm-s") }

// Large is the folder of the large model, gsm-l: 2,560,320 parameters.
func Large() fs.FS { return folder("pair/gsm-l") }

// Tokenizer opens the tokenizer that both models share: byte-level BPE with 1,024 tokens.
func Tokenizer() (*tokenizer.Tokenizer, error) { return tokenizer.OpenFS(folder("pair"), ".") }

// folder is a folder of files, which is there by construction.
func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(fmt.Sprintf("demo: %v", err))
	}
	return sub
}
