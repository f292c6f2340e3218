package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// addProgressFlag gives a command that works for longer --progress.
func addProgressFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "progress", "auto", "on stderr: bar, plain (a line every few seconds), none; auto: bar on a terminal, else plain")
	complete(cmd, "progress", "auto", "bar", "plain", "none")
}

// progress shows how far a run is: a bar on a terminal, elsewhere a plain line every few seconds.
type progress struct {
	bar *progressbar.ProgressBar

	mu    sync.Mutex
	out   io.Writer // plain lines; nil for none
	total int       // -1 where unknown
	what  string
	ended int
	next  time.Time
}

// plainEvery is the time between two plain lines.
const plainEvery = 3 * time.Second

// newProgress counts up to total things called what; total -1 is unknown.
func newProgress(w io.Writer, kind string, total int, what string) (*progress, error) {
	p := &progress{total: total, what: what}
	if kind == "auto" {
		kind = "plain"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			kind = "bar"
		}
	}
	switch kind {
	case "bar":
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true))
	case "plain":
		p.out, p.next = w, time.Now().Add(plainEvery)
	case "none":
	default:
		return nil, badUsage("--progress %q: want auto, bar, plain or none", kind)
	}
	return p, nil
}

// add counts what has ended. It may be called by several goroutines.
func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // what a terminal refuses is not worth stopping a run
		return
	}
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended += n
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(plainEvery)
		of := ""
		if p.total >= 0 {
			of = fmt.Sprintf(" of %d", p.total)
		}
		fmt.Fprintf(p.out, "trbench: %d%s %s\n", p.ended, of, p.what)
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
