// Command printschema combines graph/*.graphql into schema.graphql at the root, which the web
// page, the CLI and other clients use. It fails if the parts are not a valid schema.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

func main() {
	dir := flag.String("dir", "graph", "folder of the *.graphql parts")
	out := flag.String("out", "schema.graphql", "file to write")
	flag.Parse()
	if err := run(*dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "printschema:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.graphql"))
	if err != nil {
		return err
	}
	slices.Sort(paths)
	var sources []*ast.Source
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		sources = append(sources, &ast.Source{Name: filepath.ToSlash(p), Input: string(b)})
	}
	schema, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	buf.WriteString("# Printed from graph/*.graphql by `make gen`. Do not edit.\n")
	formatter.NewFormatter(&buf, formatter.WithIndent("  ")).FormatSchema(schema)
	return os.WriteFile(out, buf.Bytes(), 0o644)
}
