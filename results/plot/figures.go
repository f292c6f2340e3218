package plot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trbench/trbench/results"
)

// Data is what figures are drawn from.
type Data struct {
	Summary *results.Summary
	// TTFT[i] holds the times to first token of the requests of Summary.Points[i], in ms and any order. Points beyond
	// its length, or with nothing in it, are left out of the distributions.
	TTFT [][]float64
}

// maxGroups bounds the groups that get figures of their own, and headlineGroups those side by side in the headline: a
// sweep has as many groups as values.
const (
	maxGroups      = 12
	headlineGroups = 4
	cdfPanels      = 4
)

// Figures lays out all figures of d: that of the sweep, or else the headline, and those of each group. The figure of a
// sweep stands alone where each group has one concurrency. The notes say what could not be shown; each figure says so
// too.
func Figures(d Data) (figures []Figure, notes []string) {
	groups := results.Groups(d.Summary.Points)
	if len(groups) == 0 {
		return nil, nil
	}
	add := func(f Figure) {
		if note := f.noteLeft(); note != "" {
			notes = append(notes, note)
		}
		figures = append(figures, f)
	}
	subject := subtitle(d.Summary)
	if f, ok := sweepFigure(groups, subject); ok {
		add(f)
		if !slices.ContainsFunc(groups, func(g results.Group) bool { return len(g.Concurrencies()) > 1 }) {
			return figures, notes
		}
	} else {
		add(headline(groups, subject))
	}
	if len(groups) > maxGroups {
		notes = append(notes, fmt.Sprintf("figures of the first %d of %d groups of points", maxGroups, len(groups)))
		groups = groups[:maxGroups]
	}
	names := fileNames(groups)
	for i := range groups {
		g := &groups[i]
		where := joinParts(g.Subtitle(), subject)
		add(metricFigure(g, "throughput-"+names[i], "output", output, where))
		add(metricFigure(g, "tpot-p99-"+names[i], "P99 time per output token", tpotP99, where))
		if f, ok := speedFigure(g, "speed-"+names[i], where); ok {
			add(f)
		}
		if f, ok := switchFigure(g, "switch-"+names[i], where); ok {
			add(f)
		}
		if f, ok := cdfFigure(d, g, "ttft-cdf-"+names[i], where); ok {
			add(f)
		}
	}
	return figures, notes
}

// noteLeft says below the figure, and returns, how many points it leaves out for want of a value; "" if none.
func (f *Figure) noteLeft() string {
	n := f.left()
	if n == 0 {
		return ""
	}
	note := fmt.Sprintf("Left out for want of a value: %d.", n)
	f.notes = append(f.notes, note)
	return f.Name + ": " + note
}

// Save writes every figure into dir in every format, "svg" or "png", and returns the names of the files and Figures'
// notes.
func Save(dir string, d Data, formats ...string) (files, notes []string, err error) {
	if err := checkFormats(formats); err != nil {
		return nil, nil, err
	}
	figures, notes := Figures(d)
	files, err = save(dir, figures, formats)
	return files, notes, err
}

func checkFormats(formats []string) error {
	for _, format := range formats {
		if format != "svg" && format != "png" {
			return fmt.Errorf("plot format %q: want svg or png", format)
		}
	}
	return nil
}

// save writes figures into dir and returns the names of the files.
func save(dir string, figures []Figure, formats []string) (files []string, err error) {
	for i := range figures {
		f := &figures[i]
		for _, format := range formats {
			write := f.SVG
			if format == "png" {
				write = f.PNG
			}
			var buf bytes.Buffer
			if err := write(&buf); err != nil {
				return files, err
			}
			name := f.Name + "." + format
			if err := os.WriteFile(filepath.Join(dir, name), buf.Bytes(), 0o666); err != nil {
				return files, err
			}
			files = append(files, name)
		}
	}
	return files, nil
}

// subtitle says where the figures come from.
func subtitle(s *results.Summary) string {
	parts := []string{results.Origin(s.Points)}
	if n := s.Points[0].Requests; !slices.ContainsFunc(s.Points, func(p results.Point) bool { return p.Requests != n }) {
		parts = append(parts, fmt.Sprintf("%d requests a point", n))
	}
	return joinParts(append(parts, fmt.Sprintf("seed %d", s.Seed))...)
}

func joinParts(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// systemsOf lists the systems of groups, TokenRouter first.
func systemsOf(groups ...results.Group) []string {
	var points []results.Point
	for i := range groups {
		for _, p := range groups[i].Points {
			points = append(points, results.Point{System: p.System})
		}
	}
	return results.Systems(points)
}

// doubt is what is to be said about the percentiles of groups: nothing, or one line.
func doubt(groups []results.Group) []string {
	var found []string
	for i := range groups {
		for _, p := range groups[i].Points {
			if p.Note != "" && !slices.Contains(found, p.Note) {
				found = append(found, p.Note)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return []string{found[0] + "."}
	}
	return []string{"Some P99 are over too few requests for their 95 % interval to have an upper bound."}
}
