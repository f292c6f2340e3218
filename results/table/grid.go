package table

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// grid is a table before it is laid out.
type grid struct {
	head  []string   // headings; a newline starts a second line
	words []int      // columns that are flush left; the others are figures, flush right
	rows  [][]string // a nil row is a blank line
}

func (g *grid) align() []tw.Align {
	aligns := make([]tw.Align, len(g.head))
	for i := range aligns {
		aligns[i] = tw.AlignRight
		if slices.Contains(g.words, i) {
			aligns[i] = tw.AlignLeft
		}
	}
	return aligns
}

// render lays the table out with r, and cuts the blanks that it leaves at the ends of lines.
func (g *grid) render(w io.Writer, r tw.Renderer) error {
	var buf bytes.Buffer
	aligns := tw.CellAlignment{Global: tw.AlignRight, PerColumn: g.align()}
	// The cells are formatted already: what tablewriter would make of "P99" or of two blanks is not wanted.
	cells := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
		Alignment:  aligns,
		Padding:    tw.CellPadding{Global: tw.Padding{Left: " ", Right: " ", Overwrite: true}},
	}
	t := tablewriter.NewTable(&buf,
		tablewriter.WithRenderer(r),
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells, Behavior: tw.Behavior{TrimSpace: tw.Off}}),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithEastAsian(tw.Off), // else the widths depend on the locale
	)
	t.Header(g.head)
	for _, row := range g.rows {
		if row == nil {
			row = make([]string, len(g.head))
		}
		if err := t.Append(slices.Clone(row)); err != nil { // Append keeps the slice
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(buf.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// plain draws a table with one rule below the headings and nothing between columns.
func plain() tw.Renderer {
	return renderer.NewBlueprint(tw.Rendition{
		Borders: tw.BorderNone,
		Symbols: tw.NewSymbols(tw.StyleLight),
		Settings: tw.Settings{
			Separators: tw.Separators{ShowHeader: tw.On, BetweenRows: tw.Off, BetweenColumns: tw.Off},
			Lines:      tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On},
		},
	})
}

// markdown draws a table that Markdown understands.
func markdown() tw.Renderer { return renderer.NewMarkdown() }
