// Package output writes the berth command's results: tables that fit the
// terminal, or the same data as JSON or YAML in the API's own shape. Only the
// berth command imports it.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"
)

// Formats are the values of -o.
var Formats = []string{"table", "json", "yaml"}

// Printer writes results in one format.
type Printer struct {
	W      io.Writer
	Format string
	Width  int // of the terminal; 0 = do not cut
	Color  bool
}

// Valid returns an error if the format does not exist.
func Valid(format string) error {
	for _, f := range Formats {
		if f == format {
			return nil
		}
	}
	return fmt.Errorf("-o %s: choose table, json or yaml: %w", format, errdefs.ErrInvalidArgument)
}

// Machine reports whether the output is for programs.
func (p Printer) Machine() bool { return p.Format != "table" }

// Print writes v as JSON or YAML, or calls table for people.
func (p Printer) Print(v any, table func() error) error {
	switch p.Format {
	case "json":
		enc := json.NewEncoder(p.W)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		// The detour through JSON gives both formats the same names.
		b, err = yaml.JSONToYAML(b)
		if err != nil {
			return fmt.Errorf("encode yaml: %w", err)
		}
		_, err = p.W.Write(b)
		return err
	}
	return table()
}

// Line writes v as one line of JSON or one YAML document, or calls table. It is for output without
// an end.
func (p Printer) Line(v any, table func() error) error {
	switch p.Format {
	case "json":
		enc := json.NewEncoder(p.W)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case "yaml":
		if _, err := io.WriteString(p.W, "---\n"); err != nil {
			return err
		}
	}
	return p.Print(v, table)
}
