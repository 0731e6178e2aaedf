package graph_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// accessReport is the content of testdata/access.txt.
type accessReport struct {
	rows             []*accessRow
	columns          []string
	allowed, refused int
}

// accessRow is a line: a field, or the title of a section.
type accessRow struct {
	report *accessReport
	title  string
	name   string
	cells  []string
}

func (r *accessReport) section(title string) { r.rows = append(r.rows, &accessRow{title: title}) }

func (r *accessReport) row(name string) *accessRow {
	row := &accessRow{report: r, name: name}
	r.rows = append(r.rows, row)
	return row
}

// add appends the cells of one role, one letter for each scope.
func (r *accessRow) add(cells string) {
	r.cells = append(r.cells, cells)
	allowed := strings.Count(cells, "y")
	r.report.allowed += allowed
	r.report.refused += len(cells) - allowed
}

func (r *accessRow) String() string { return strings.Join(r.cells, " ") }

// fields returns the number of fields.
func (r *accessReport) fields() (n int) {
	for _, row := range r.rows {
		if row.title == "" {
			n++
		}
	}
	return n
}

func (r *accessReport) text() []byte {
	var out bytes.Buffer
	line := func(name string, cells []string) {
		text := fmt.Sprintf("%-44s", name)
		for _, c := range cells {
			text += fmt.Sprintf(" %-10s", c)
		}
		fmt.Fprintln(&out, strings.TrimRight(text, " "))
	}
	fmt.Fprintln(&out, "# own project domain foreign: y allowed, n denied, - as if it did not exist")
	for _, row := range r.rows {
		if row.title != "" {
			fmt.Fprintln(&out)
			line("# "+row.title, r.columns)
			continue
		}
		line(row.name, row.cells)
	}
	return out.Bytes()
}

// compareMatrix returns the number of lines that differ from the reviewed table.
func compareMatrix(t *testing.T, got []byte) int {
	t.Helper()
	const file = "testdata/access.txt"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]bool{}
	for line := range strings.Lines(string(want)) {
		old[line] = true
	}
	unexpected := 0
	for line := range strings.Lines(string(got)) {
		if !old[line] {
			unexpected++
		}
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("access is not as reviewed (-want +got):\n%s", diff)
	}
	return unexpected
}
