// Package trace reads dataset files: of each entry the tokens of its prompt and output, and its arrival where the file
// has one. It streams: of an entry's text only what is asked for is kept, so that a file of any size needs memory for
// its numbers alone. It chooses nothing and drops nothing but entries that can't be a request by their form (a
// conversation of one turn); which lengths to use is package workloads' business.
//
// Read trace.go (Read and what it returns), then format.go (which forms there are and how one is told), then one reader
// (sharegpt.go, question.go, numbers.go, csv.go). source.go checks the bytes, object.go walks JSON, count.go counts
// tokens.
//
// What all readers take: a byte order mark is skipped, CRLF is a line break, blank lines and unknown fields don't
// matter. What none takes: bytes that aren't UTF-8, a field of the wrong type, a field or column that comes twice,
// numbers that are negative, fractional, infinite or beyond MaxTokens. Each is a *DataError.
package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Entry is one entry of a file, in numbers.
type Entry struct {
	Number  int           // 1-based position in the file
	Prompt  int           // tokens; 0 where the file says so, or the text is empty
	Output  int           // tokens; 0 likewise, and where the form has no outputs
	Arrival time.Duration // since the trace began; only where Trace.HasArrivals
	Text    string        // of the prompt; only where Options.Keep asks for it
}

// Skip counts entries left out for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Options say how to read. The zero value tells the form by itself, estimates tokens for Llama 3.1, keeps no text and
// stops at the first problem.
type Options struct {
	Format    Format    // empty means Auto
	Tokenizer Tokenizer // whose counts to estimate; empty means Llama31
	Counter   Counter   // counts tokens; nil means NewEstimator(Tokenizer)
	// PromptsOnly takes entries that have a prompt and no output: ShareGPT conversations of one turn.
	PromptsOnly bool
	// Keep says whether to keep the prompt text of an entry, by its number; nil keeps none.
	Keep func(number int) bool
	// Problem is told each bad entry, and says whether to go on behind it; nil stops at the first. Where the text can't
	// be followed any more (truncated JSON, bytes that aren't UTF-8), reading ends whatever it says.
	Problem func(*DataError) bool
}

// Trace is what a file holds.
type Trace struct {
	Format      Format
	Entries     []Entry  // in file order
	Total       int      // entries seen: len(Entries), the skipped and the malformed
	Skipped     []Skip   // by reason, sorted
	Malformed   int      // entries that Options.Problem was told of
	HasArrivals bool     // every entry has an arrival
	HasOutputs  bool     // false for forms that hold prompts only
	Estimated   bool     // tokens are an Estimator's
	Notes       []string // what a reader of the numbers should know
}

// ReadFile reads the file at path. Every error is a *DataError.
func ReadFile(path string, o Options) (*Trace, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DataError{File: path, Msg: "no such file", Err: err}
	case err != nil:
		return nil, &DataError{File: path, Msg: "can't be opened: " + cause(err), Err: err}
	case info.IsDir():
		return nil, &DataError{File: path, Msg: "found a directory, wanted a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &DataError{File: path, Msg: "can't be opened: " + cause(err), Err: err}
	}
	defer f.Close()
	return Read(f, path, o)
}

// cause is an error of package os without the operation and the path, which the message has already.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// Read reads a dataset from r; name stands for it in errors, all of which are *DataError. A trace with no entry at all
// is an error; one whose entries were all skipped is not.
func Read(r io.Reader, name string, o Options) (*Trace, error) {
	if o.Format == "" {
		o.Format = Auto
	}
	if o.Tokenizer == "" {
		o.Tokenizer = Llama31
	}
	rd := &reader{file: name, opt: o, skips: map[string]int{}, counter: o.Counter}
	if rd.counter == nil {
		rd.counter = NewEstimator(o.Tokenizer)
	}
	if err := rd.read(r); err != nil {
		return nil, err
	}
	return rd.finish()
}

// reader is one file being read.
type reader struct {
	file    string
	opt     Options
	counter Counter
	format  Format
	out     Trace
	skips   map[string]int

	entry  int  // number of the entry at hand, or of the last
	within bool // in an entry: an error concerns it
	badOne int  // the last malformed entry, so that it is counted once

	timed  timing
	origin time.Time // the first date, of a form with dates

	first       role // whose turn is first in the conversation at hand
	nested      bool // the conversation at hand was JSON inside a string
	decoded     int  // conversations of that kind
	answerFirst int  // conversations that the model begins
}

// timing says whether a file's entries have arrivals.
type timing uint8

const (
	unknownYet timing = iota
	timed
	untimed
)

func (r *reader) read(in io.Reader) error {
	src := newSource(in)
	br := bufio.NewReaderSize(src, 64<<10)
	start, err := opened(br)
	if err != nil {
		return r.bad(err)
	}
	jsonForm := r.opt.Format != Azure && r.opt.Format != BurstGPT
	if r.opt.Format == Auto || r.opt.Format == Lengths {
		jsonForm = start.first == '[' || start.first == '{'
	}
	if !jsonForm || start.first != '[' {
		src.untrack()
	}
	if !jsonForm {
		return r.readCSV(br, start.line)
	}
	return r.readJSON(br, src, start)
}

// opening is where the text of a file begins: behind blanks and blank lines.
type opening struct {
	first byte
	off   int64 // bytes passed
	line  int   // lines passed
}

func opened(br *bufio.Reader) (o opening, err error) {
	for {
		c, err := br.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return o, &DataError{Msg: "found an empty file, wanted a dataset", lost: true}
		case err != nil:
			return o, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			o.off++
			if c == '\n' {
				o.line++
			}
		default:
			o.first = c
			return o, br.UnreadByte()
		}
	}
}

// bad completes an error's place.
func (r *reader) bad(err error) *DataError {
	var e *DataError
	if !errors.As(err, &e) {
		e = &DataError{Msg: "can't be read: " + err.Error(), Err: err, lost: true}
	}
	e.File = r.file
	if e.Entry == 0 && r.within {
		e.Entry = r.entry
	}
	return e
}

// problem reports a bad entry: nil means to go on behind it.
func (r *reader) problem(err error) error {
	e := r.bad(err)
	if r.opt.Problem == nil {
		return e
	}
	if r.within && r.badOne != r.entry {
		r.badOne = r.entry
		r.out.Malformed++
	}
	if !r.opt.Problem(e) || e.lost {
		return errStop
	}
	return nil
}

// errStop ends reading with what was read so far.
var errStop = errors.New("stop")

// begin starts the next entry.
func (r *reader) begin() {
	r.entry++
	r.within = true
	r.first, r.nested = nobody, false
}

// add takes the entry at hand, or counts why it is no request.
func (r *reader) add(e Entry, skip string) {
	if skip != "" {
		r.skips[skip]++
		return
	}
	e.Number = r.entry
	r.out.Entries = append(r.out.Entries, e)
}

// prompt counts a prompt's tokens and keeps its text where that is asked for.
func (r *reader) prompt(e *Entry, text string) {
	e.Prompt = min(r.counter.Count(text), MaxTokens)
	if r.opt.Keep != nil && r.opt.Keep(r.entry) {
		e.Text = text
	}
}

func (r *reader) output(e *Entry, text string) { e.Output = min(r.counter.Count(text), MaxTokens) }

// missing is the error for an object that lacks a field.
func missing(s *scanner, field string, have []string) error {
	return fault(s.line(), field, "not found among %s", list(have))
}

// list names fields for an error message: the first ten.
func list(names []string) string {
	const most = 10
	var b strings.Builder
	for i, n := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(clip(n))
	}
	if b.Len() == 0 {
		return "no fields"
	}
	return b.String()
}

func (r *reader) finish() (*Trace, error) {
	t := &r.out
	t.Format, t.Total, t.HasArrivals = r.format, r.entry, r.timed == timed
	if t.Total == 0 {
		return nil, &DataError{File: r.file, Msg: fmt.Sprintf("found no entries, wanted at least one (%s)", r.format)}
	}
	for reason, n := range r.skips {
		t.Skipped = append(t.Skipped, Skip{reason, n})
	}
	slices.SortFunc(t.Skipped, func(a, b Skip) int { return strings.Compare(a.Reason, b.Reason) })
	t.HasOutputs = t.Format != Questions
	t.Estimated = r.opt.Counter == nil && t.Format.HasText()
	if r.format == Azure {
		fromFirst(t.Entries)
	}
	r.notes()
	return t, nil
}

// fromFirst moves arrivals so that the earliest is 0.
func fromFirst(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	least := entries[0].Arrival
	for _, e := range entries {
		least = min(least, e.Arrival)
	}
	for i := range entries {
		entries[i].Arrival -= least
	}
}

func (r *reader) notes() {
	t := &r.out
	if t.Estimated {
		t.Notes = append(t.Notes, estimateNote(t.Format, r.opt.Tokenizer))
	}
	if r.decoded > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d conversations were JSON inside a string, and were decoded",
			r.decoded))
	}
	if r.answerFirst > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d conversations begin with the model's turn; it is taken as the "+
			"prompt, as vLLM and SGLang do: roles are not checked", r.answerFirst))
	}
	if t.Format == Mooncake {
		t.Notes = append(t.Notes, "shared prefixes (hash_ids) are not read: every prompt counts as new")
	}
}
