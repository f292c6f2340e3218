package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trbench/trbench/sim/markov"
)

// readChain reads the matrices of a routing algorithm's hops from a JSON document with the keys p and c, what trbench
// program compile --output json writes. "-" is in. note is a doubt about them, or empty.
func readChain(path string, in io.Reader) (r markov.Routing, note string, err error) {
	name := path
	if path == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return r, "", err
		}
		defer f.Close()
		in = f
	}
	var doc struct {
		Program string      `json:"program"`
		P       [][]float64 `json:"p"`
		C       [][]float64 `json:"c"`
		Exact   *bool       `json:"exact"`
	}
	if err := json.NewDecoder(in).Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("empty")
		}
		return r, "", fmt.Errorf("%s: want an object with matrices p and c: %w", name, err)
	}
	if doc.P == nil || doc.C == nil {
		return r, "", fmt.Errorf("%s: field p or c is missing: want the matrices of trbench program compile --output json", name)
	}
	if doc.Exact != nil && !*doc.Exact {
		note = fmt.Sprintf("%s: P and C of %s were observed: it is no Markov chain over the models, and these figures are near it, no more",
			name, doc.Program)
	}
	return markov.Routing{P: doc.P, C: doc.C}, note, nil
}
