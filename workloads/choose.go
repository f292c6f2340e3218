package workloads

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trbench/trbench/workloads/internal/draw"
	"github.com/trbench/trbench/workloads/trace"
)

// choice is the entries that become requests.
type choice struct {
	measured, warmup []trace.Entry
	timed            bool // their arrivals are to be kept
}

// choose picks among the usable entries, without replacement: the first N of the source's order, or of a shuffle that
// depends on the seed alone, so that a longer list begins with the shorter one. Warm-up requests are taken from the
// other end. Where N is more than there are, the same order is gone through again; that is noted.
func (s *Set) choose(usable []trace.Entry, hasArrivals bool, rules sampler, o Options) (*choice, error) {
	c := &choice{timed: rules.ordered && hasArrivals}
	if c.timed {
		s.sortByArrival(usable)
	} else if !rules.ordered {
		shuffle(usable, o.Seed)
	}
	n := o.N
	if n == 0 {
		n = len(usable)
	}
	return c, s.pick(c, usable, n, o.Warmup)
}

// sieve is the entries that the rules let through, with the outputs that the options set.
func (s *Set) sieve(t *trace.Trace, rules sampler, o Options) []trace.Entry {
	output := o.Output
	switch {
	case output > 0:
		s.note("every output is set to %d tokens", output)
	case !t.HasOutputs:
		output = DefaultOutput
		s.note("the source has prompts only: every output is taken as %d tokens", output)
	}
	skips := map[string]int{}
	for _, k := range t.Skipped {
		skips[k.Reason] += k.Count
	}
	usable := make([]trace.Entry, 0, len(t.Entries))
	for _, e := range t.Entries {
		if output > 0 {
			e.Output = output
		}
		if why := rules.drop(e.Prompt, e.Output); why != "" {
			skips[why]++
			continue
		}
		usable = append(usable, e)
	}
	s.Total, s.Usable = t.Total, len(usable)
	for _, why := range slices.Sorted(maps.Keys(skips)) {
		s.Skipped = append(s.Skipped, Skip{Reason: why, Count: skips[why]})
	}
	return usable
}

func (s *Set) nothingUsable() string {
	var why []string
	for _, k := range s.Skipped {
		why = append(why, fmt.Sprintf("%d: %s", k.Count, k.Reason))
	}
	return fmt.Sprintf("found no usable request among %d entries, wanted at least one (sampler %s left out %s)",
		s.Total, s.Sampler, strings.Join(why, "; "))
}

// sortByArrival puts a replay in order; most traces are.
func (s *Set) sortByArrival(usable []trace.Entry) {
	byArrival := func(a, b trace.Entry) int { return cmp.Compare(a.Arrival, b.Arrival) }
	if !slices.IsSortedFunc(usable, byArrival) {
		slices.SortStableFunc(usable, byArrival)
		s.note("the source isn't in order of arrival; the list is")
	}
}

// shuffle is Fisher and Yates', from the front.
func shuffle(entries []trace.Entry, seed uint64) {
	stream := draw.New(seed, draw.Choice, 0)
	for i := range entries {
		j := i + stream.Below(len(entries)-i)
		entries[i], entries[j] = entries[j], entries[i]
	}
}

// pick takes n requests from the front of the order and the warm-up from its back, both again and again where the order
// is too short.
func (s *Set) pick(c *choice, order []trace.Entry, n, warmup int) error {
	period := time.Duration(0)
	if c.timed {
		period = lap(order)
		left := trace.MaxArrival - order[len(order)-1].Arrival
		if laps := time.Duration((n - 1) / len(order)); laps > 0 && period > left/laps {
			return fmt.Errorf("%d requests would replay the %d usable ones for more than ten years", n, len(order))
		}
	}
	c.measured = make([]trace.Entry, n)
	for i := range c.measured {
		c.measured[i] = order[i%len(order)]
		c.measured[i].Arrival += time.Duration(i/len(order)) * period
	}
	c.warmup = make([]trace.Entry, warmup)
	for i := range c.warmup {
		c.warmup[i] = order[len(order)-1-i%len(order)]
	}
	if n > len(order) {
		s.note("%d requests of %d usable ones: the list wraps around, each comes %d or %d times", n, len(order),
			n/len(order), (n+len(order)-1)/len(order))
	}
	if warmup > 0 && n+warmup > len(order) {
		s.note("%d requests and %d for warm-up of %d usable ones: the warm-up reuses measured requests", n, warmup,
			len(order))
	}
	return nil
}

// lap is how much later a replay's second round is than its first: from the first arrival to the last, and one mean gap
// more; a second where there is a single arrival.
func lap(order []trace.Entry) time.Duration {
	if len(order) < 2 {
		return time.Second
	}
	long := order[len(order)-1].Arrival - order[0].Arrival
	return long + long/time.Duration(len(order)-1)
}

func (s *Set) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// texts reads the file again for the prompts of the chosen entries.
func (c *choice) texts(path string, read trace.Options, first *trace.Trace) error {
	wanted := make(map[int]string, len(c.measured)+len(c.warmup))
	for _, list := range [][]trace.Entry{c.measured, c.warmup} {
		for _, e := range list {
			wanted[e.Number] = ""
		}
	}
	read.Format = first.Format
	read.Keep = func(number int) bool { _, ok := wanted[number]; return ok }
	again, err := trace.ReadFile(path, read)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(first.Entries, again.Entries, sameNumbers) {
		return &DataError{File: path, Msg: "found other entries on the second reading: the file has changed meanwhile"}
	}
	for _, e := range again.Entries {
		if _, ok := wanted[e.Number]; ok {
			wanted[e.Number] = e.Text
		}
	}
	for _, list := range [][]trace.Entry{c.measured, c.warmup} {
		for i := range list {
			list[i].Text = wanted[list[i].Number]
		}
	}
	return nil
}

func sameNumbers(a, b trace.Entry) bool {
	a.Text, b.Text = "", ""
	return a == b
}

// take makes requests of the chosen entries.
func (s *Set) take(c *choice) {
	s.HasArrivals = c.timed
	s.Requests = make([]Request, len(c.measured))
	for i, e := range c.measured {
		s.Requests[i] = Request{Prompt: e.Prompt, Output: e.Output, Text: e.Text}
		if c.timed {
			s.Requests[i].Arrival = e.Arrival
		}
	}
	s.Warmup = make([]Request, len(c.warmup))
	for i, e := range c.warmup {
		s.Warmup[i] = Request{Prompt: e.Prompt, Output: e.Output, Text: e.Text}
	}
	s.SHA256 = digest(s.Requests)
}

// digest is Set.SHA256 of a list.
func digest(requests []Request) string {
	h := sha256.New()
	line := []byte("trbench.requests/1\n")
	for _, r := range requests {
		h.Write(line)
		line = strconv.AppendInt(line[:0], int64(r.Prompt), 10)
		line = append(line, ',')
		line = strconv.AppendInt(line, int64(r.Output), 10)
		line = append(line, ',')
		line = strconv.AppendInt(line, int64(r.Arrival), 10)
		line = append(line, '\n')
	}
	h.Write(line)
	return hex.EncodeToString(h.Sum(nil))
}
