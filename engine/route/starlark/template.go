package starlark

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/models/signal"
)

//go:embed programs/*.star
var programs embed.FS

// Examples are the names of the built-in algorithms that there is a file for; each decides as the algorithm does.
func Examples() []string {
	files, err := fs.Glob(programs, "programs/*.star")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".star"))
	}
	return names
}

// Example is the file of a built-in algorithm; false if there is none.
func Example(name string) (src []byte, ok bool) {
	src, err := programs.ReadFile("programs/" + strings.ToLower(name) + ".star")
	return src, err == nil
}

// Template is a new program to start from.
func Template(name string) []byte {
	return fmt.Appendf(nil, template, name)
}

const template = `# %s: a routing program.
#
# It is straight-line code over one request r. Each step returns when it has run:
#   r.decode(model)              one token; the next step commits it, unless r.drop() takes it back
#   r.decode_while(model, stay)  tokens while stay(token) holds, or while a rule does not fire; cheapest
#   r.draft(model)               one token that is held until it is verified, committed or dropped
#   r.verify(model)              scores all held tokens in one pass and adds one: .accepted, .drafted, .drafts
#   r.extend(model)              what a model says of the next token, which is dropped
# Between steps: r.drop(n), r.accept(n), r.hold(), r.commit(), r.done(), r.left(), r.held(), r.len(), r.rand(), r.now(),
# r.query(), r.top(), r.id, r.prompt. A token has score (an external router's), entropy (nats), normalised, confidence,
# margin, id, pos, model, stop. Models are numbered from 0: small, ..., large; there are models of them.

# What the program acts on at the small model: a simulation makes it fire at the switch rate.
rules = rule("confidence", below = 0.5)

def program(r):
    while not r.done():
        t = r.decode_while(small, rules)
        if rules.fires(t):
            r.drop()
            r.decode(large)
`

// Create writes a new program to path, after the template, and never over a file that is there.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(Template(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Check runs the program on random signals, with rules that fire now and then, often and always, and reports the first
// request that it fails.
func (f *File) Check() error {
	for _, rate := range []float64{.1, .5, 1} {
		rates := make([]float64, len(f.rules))
		for i := range rates {
			rates[i] = rate
		}
		s, err := signal.New(signal.Config{Rules: f.rules, Rates: rates})
		if err != nil {
			return &Error{f.assigned("rules"), err}
		}
		for _, output := range []int32{1, 2, 60} {
			run := dispatch.Run{Requests: 5, Prompt: 20, Output: output}
			o, err := dispatch.Observe(route.NewRunner(f.Spec()), s, f.opt.Models, run)
			if err != nil {
				return err
			}
			if o.Err != nil {
				return fmt.Errorf("a request of %d tokens: %w", output, o.Err)
			}
		}
	}
	return nil
}
