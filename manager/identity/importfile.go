package identity

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berthhq/berth/internal/problem"
)

// ImportStatus is the result for a row.
type ImportStatus string

// The results.
const (
	ImportCreated     ImportStatus = "created"
	ImportWouldCreate ImportStatus = "would_create"
	ImportSkipped     ImportStatus = "skipped"
	ImportFailed      ImportStatus = "failed"
)

// ImportPasswords is the source of passwords for rows without one.
type ImportPasswords string

// The sources.
const (
	PasswordsGiven     ImportPasswords = "given" // every row must have a password
	PasswordsGenerated ImportPasswords = "generated"
)

const (
	csvField = "csv"
	maxFile  = 1 << 20
	maxRows  = 5000
)

// columns are the columns of the file; only the first is required.
var columns = []string{"email", "username", "full_name", "role", "projects", "password", "policy"}

// row is one line of the file by column, or its error.
type row struct {
	line int
	of   map[string]string
	err  error
}

func (r row) projects() []string {
	var out []string
	for name := range strings.SplitSeq(r.of["projects"], ";") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// parseRows parses the file. It returns an error if the whole file is invalid; the error of a
// row is part of the row.
func parseRows(text string) ([]row, error) {
	if len(text) > maxFile {
		return nil, problem.Invalid(csvField, "is too large").WithLimit(fmt.Sprint(maxFile))
	}
	if !utf8.ValidString(text) {
		return nil, problem.Invalid(csvField, "is not UTF-8")
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord = -1
	header, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	var rows []row
	for {
		values, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if len(rows) == maxRows {
			return nil, problem.Invalid(csvField, "has too many rows").WithLimit(fmt.Sprint(maxRows))
		}
		rows = append(rows, readRow(r, header, values, err))
	}
}

func readHeader(r *csv.Reader) ([]string, error) {
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, problem.Invalid(csvField, "is empty")
	}
	if err != nil {
		return nil, problem.Invalid(csvField, "has a header that cannot be read: %v", err)
	}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(columns, name) {
			return nil, problem.Invalid(csvField, "has the unknown column %.40q; known are %s", name, strings.Join(columns, ", "))
		}
		if slices.Contains(header[:i], name) {
			return nil, problem.Invalid(csvField, "has the column %s twice", name)
		}
		header[i] = name
	}
	if !slices.Contains(header, columns[0]) {
		return nil, problem.Invalid(csvField, "has no column %s", columns[0])
	}
	return header, nil
}

func readRow(r *csv.Reader, header, values []string, err error) row {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return row{line: bad.StartLine, of: map[string]string{}, err: problem.Invalid(csvField, "cannot be read: %v", bad.Err)}
	}
	line, _ := r.FieldPos(0)
	out := row{line: line, of: map[string]string{}}
	if len(values) != len(header) {
		out.err = problem.Invalid(csvField, "has %d fields where the header has %d", len(values), len(header))
	}
	for i, v := range values[:min(len(values), len(header))] {
		if header[i] != "password" { // spaces can be part of a password
			v = strings.TrimSpace(v)
		}
		out.of[header[i]] = v
	}
	return out
}
