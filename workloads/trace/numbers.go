package trace

import (
	"strings"
	"time"
)

// column is a numeric field of an object, or column of a table, by its name.
type column struct {
	name     string
	is       figure
	unit     time.Duration // of an arrival; 0 is a date
	optional bool
}

// figure is what a column holds.
type figure uint8

const (
	promptTokens figure = iota
	outputTokens
	arrivalTime
)

// columns are the numeric names of a form, in the spellings that exist of it. A table's names are compared by
// plainName, an object's as they are.
func columns(f Format) [][]column {
	switch f {
	case Azure:
		return [][]column{{
			{name: "TIMESTAMP", is: arrivalTime},
			{name: "ContextTokens", is: promptTokens},
			{name: "GeneratedTokens", is: outputTokens},
		}}
	case BurstGPT:
		return [][]column{{
			{name: "Timestamp", is: arrivalTime, unit: time.Second},
			{name: "Request tokens", is: promptTokens},
			{name: "Response tokens", is: outputTokens},
		}}
	case Mooncake:
		return [][]column{{
			{name: "timestamp", is: arrivalTime, unit: time.Millisecond},
			{name: "input_length", is: promptTokens},
			{name: "output_length", is: outputTokens},
		}}
	case Lengths:
		return [][]column{{
			{name: "prompt_tokens", is: promptTokens},
			{name: "output_tokens", is: outputTokens},
			{name: "arrival_s", is: arrivalTime, unit: time.Second, optional: true},
		}, { // as LLMServingSim writes it
			{name: "input_toks", is: promptTokens},
			{name: "output_toks", is: outputTokens},
			{name: "arrival_time_ns", is: arrivalTime, unit: time.Nanosecond, optional: true},
		}}
	}
	return nil
}

// spelling is the first spelling of a form whose needed columns are all there, else the first column that its main
// spelling lacks.
func spelling(f Format, has func(name string) bool) (cols []column, lacks string) {
	for _, alt := range columns(f) {
		without := ""
		for _, c := range alt {
			if !c.optional && !has(c.name) && without == "" {
				without = c.name
			}
		}
		if without == "" {
			return alt, ""
		}
		if lacks == "" {
			lacks = without
		}
	}
	return nil, lacks
}

// numbers reads an object of a numeric form.
func (r *reader) numbers(s *scanner) (e Entry, skip string, err error) {
	got := map[string]string{}
	var fields []string
	err = s.members(func(name string) error {
		fields = append(fields, name)
		for _, alt := range columns(r.format) {
			for _, c := range alt {
				if c.name == name {
					v, err := s.number(name)
					got[name] = v
					return err
				}
			}
		}
		return s.skip()
	})
	if err != nil {
		return e, "", err
	}
	cols, lacks := spelling(r.format, func(name string) bool { _, ok := got[name]; return ok })
	if lacks != "" {
		return e, "", missing(s, lacks, fields)
	}
	for _, c := range cols {
		v, ok := got[c.name]
		if c.is == arrivalTime {
			if err := r.sameArrivals(c.name, ok, s.line()); err != nil {
				return e, "", err
			}
		}
		if ok {
			if err := r.set(&e, c, v, s.line()); err != nil {
				return e, "", err
			}
		}
	}
	return e, "", nil
}

// sameArrivals sees to it that all entries of a file have an arrival, or none.
func (r *reader) sameArrivals(field string, has bool, line int) error {
	if r.timed == unknownYet {
		r.timed = untimed
		if has {
			r.timed = timed
		}
	}
	switch {
	case has && r.timed == untimed:
		return fault(line, field, "found an arrival, wanted none: the first entry has none")
	case !has && r.timed == timed:
		return fault(line, field, "found no arrival, wanted one: the first entry has one")
	}
	return nil
}

// set puts a figure into an entry.
func (r *reader) set(e *Entry, c column, value string, line int) error {
	var msg string
	switch {
	case c.is == promptTokens:
		e.Prompt, msg = count(value)
	case c.is == outputTokens:
		e.Output, msg = count(value)
	case c.unit == 0:
		e.Arrival, msg = r.date(value)
	default:
		e.Arrival, msg = span(value, c.unit)
	}
	if msg != "" {
		return &DataError{Line: line, Field: c.name, Msg: msg}
	}
	return nil
}

// date reads a point in time as the span since the file's first one; finish makes it the span since the earliest.
func (r *reader) date(s string) (time.Duration, string) {
	s = strings.TrimSpace(s)
	for _, layout := range []string{
		"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00",
	} {
		t, err := time.Parse(layout, s) // takes a fraction of a second whatever the layout
		if err != nil {
			continue
		}
		if r.origin.IsZero() {
			r.origin = t
		}
		d := t.Sub(r.origin) // saturates
		if d > MaxArrival || d < -MaxArrival {
			return 0, "found " + shown(s) + ", wanted a date within ten years of the first, " +
				r.origin.Format("2006-01-02")
		}
		return d, ""
	}
	return 0, "found " + shown(s) + ", wanted a date as 2023-11-16 18:15:46.6805900"
}
