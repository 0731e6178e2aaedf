package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Color of a cell.
type Color string

// The colors, as ANSI codes.
const (
	Plain  Color = ""
	Green  Color = "32"
	Yellow Color = "33"
	Red    Color = "31"
	Dim    Color = "2"
)

// Cell is a text in a table with its color.
type Cell struct {
	Text  string
	Color Color
}

// narrowest is the minimum width of a shortened column.
const narrowest = 8

// Table collects rows of cells.
type Table struct {
	head  []string
	rows  [][]Cell
	spare []string
}

// NewTable returns a table with the column names.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Spare names the columns that can be left out if the terminal is too narrow, in the order of their
// removal.
func (t *Table) Spare(heads ...string) *Table {
	t.spare = heads
	return t
}

// Row adds a row of strings and Cells.
func (t *Table) Row(cells ...any) {
	row := make([]Cell, 0, len(cells))
	for _, c := range cells {
		var cell Cell
		switch c := c.(type) {
		case Cell:
			cell = c
		case string:
			cell.Text = c
		case fmt.Stringer:
			cell.Text = c.String()
		}
		cell.Text = Clean(cell.Text)
		if cell.Text == "" {
			cell.Text = "-"
		}
		row = append(row, cell)
	}
	t.rows = append(t.rows, row)
}

// Write prints the table, cut to the printer's width.
func (p Printer) Write(t *Table) error {
	widths := t.widths()
	if p.Width > 0 {
		for _, head := range t.spare {
			if sum(widths) <= p.Width {
				break
			}
			t = t.without(head)
			widths = t.widths()
		}
		t.shrink(widths, p.Width)
	}
	var b strings.Builder
	head := make([]Cell, len(t.head))
	for i, h := range t.head {
		head[i] = Cell{Text: h, Color: Dim}
	}
	p.line(&b, head, widths)
	for _, row := range t.rows {
		p.line(&b, row, widths)
	}
	_, err := io.WriteString(p.W, b.String())
	return err
}

func (p Printer) line(b *strings.Builder, row []Cell, widths []int) {
	for i, cell := range row {
		text := Cut(cell.Text, widths[i])
		pad := widths[i] - Width(text) + 2
		if p.Color && cell.Color != Plain {
			text = "\x1b[" + string(cell.Color) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", pad))
		}
	}
	b.WriteByte('\n')
}

func (t *Table) widths() []int {
	w := make([]int, len(t.head))
	for i, h := range t.head {
		w[i] = Width(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			w[i] = max(w[i], Width(c.Text))
		}
	}
	return w
}

// without returns the table without a column.
func (t *Table) without(head string) *Table {
	at := slices.Index(t.head, head)
	if at < 0 {
		return t
	}
	less := &Table{head: slices.Delete(slices.Clone(t.head), at, at+1)}
	for _, row := range t.rows {
		less.rows = append(less.rows, slices.Delete(slices.Clone(row), at, at+1))
	}
	return less
}

// sum returns the width of a row.
func sum(widths []int) int {
	n := 2 * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

// whole are the columns that are never shortened.
var whole = []string{"ID", "TIME"}

// shrink narrows the widest column until the row fits.
func (t *Table) shrink(widths []int, total int) {
	for n := sum(widths); n > total; n-- {
		widest := -1
		for i, w := range widths {
			if !slices.Contains(whole, t.head[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 || widths[widest] <= narrowest {
			return
		}
		widths[widest]--
	}
}

// Width is the number of terminal columns the text takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch k := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case k == width.EastAsianWide || k == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens a text to a number of terminal columns.
func Cut(s string, limit int) string {
	if Width(s) <= limit {
		return s
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n > limit-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// Clean makes foreign text safe for a terminal: one line, no control sequences.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf):
			return -1
		}
		return r
	}, s)
}
