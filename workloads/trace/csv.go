package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readCSV reads a table with a header; columns may come in any order, and further ones don't matter. skipped is the
// number of blank lines already passed.
func (r *reader) readCSV(in io.Reader, skipped int) error {
	table := csv.NewReader(in)
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return r.bad(tableError(err, skipped))
	}
	cols, place, err := r.header(header, skipped)
	if err != nil {
		return r.bad(err)
	}
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.begin()
		if err != nil {
			err = tableError(err, skipped)
		} else {
			err = r.row(table, row, cols, place, skipped)
		}
		if err != nil {
			err = r.problem(err)
		}
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// header finds the form's columns: cols[i] is in the table's column place[i].
func (r *reader) header(names []string, skipped int) (cols []column, place []int, err error) {
	at := make(map[string]int, len(names))
	for i, n := range names {
		plain := plainName(n)
		if _, twice := at[plain]; twice && plain != "" {
			return nil, nil, lost(fault(skipped+1, n, "found it twice in the header, wanted it once"))
		}
		at[plain] = i
	}
	has := func(name string) bool { _, ok := at[plainName(name)]; return ok }
	forms := []Format{r.opt.Format}
	if r.opt.Format == Auto {
		forms = []Format{Lengths, Azure, BurstGPT}
	}
	var lacks string
	for _, f := range forms {
		if cols, lacks = spelling(f, has); lacks == "" {
			r.format = f
			break
		}
	}
	switch {
	case lacks != "" && r.opt.Format == Auto:
		return nil, nil, lost(fault(skipped+1, "", "can't tell the form: found the columns %s; wanted a JSON file, or "+
			"the columns prompt_tokens and output_tokens (lengths), TIMESTAMP, ContextTokens and GeneratedTokens "+
			"(azure), or Timestamp, Request tokens and Response tokens (burstgpt)", list(names)))
	case lacks != "":
		return nil, nil, lost(fault(skipped+1, lacks, "not found among the columns %s", list(names)))
	}
	kept := cols[:0:0]
	for _, c := range cols {
		i, ok := at[plainName(c.name)]
		if c.is == arrivalTime {
			r.timed = untimed
			if ok {
				r.timed = timed
			}
		}
		if ok {
			kept, place = append(kept, c), append(place, i)
		}
	}
	return kept, place, nil
}

// plainName is a column's name without case, and with one word break.
func plainName(s string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(s)))
}

func (r *reader) row(table *csv.Reader, row []string, cols []column, place []int, skipped int) error {
	var e Entry
	for i, c := range cols {
		line, _ := table.FieldPos(place[i])
		if err := r.set(&e, c, row[place[i]], skipped+line); err != nil {
			return err
		}
	}
	r.add(e, "")
	return nil
}

// tableError places an error of package csv.
func tableError(err error, skipped int) error {
	var data *DataError
	var parse *csv.ParseError
	switch {
	case errors.As(err, &data):
		return err
	case errors.As(err, &parse):
		e := fault(skipped+parse.StartLine, "", "not a CSV row: %v", parse.Err)
		e.Err = err
		return e
	case errors.Is(err, io.EOF):
		return lost(fault(skipped+1, "", "found no header"))
	default:
		return lost(&DataError{Msg: fmt.Sprintf("can't be read: %v", err), Err: err})
	}
}

// lost marks an error that reading can't go on behind.
func lost(e *DataError) *DataError {
	e.lost = true
	return e
}
