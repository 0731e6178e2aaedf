// Command genqlient generates client/generated.go from schema.graphql and client/operations as `go
// tool genqlient` does, with the names and types of handwritten Go code: see prepare.go and
// tidy.go.
//
//	go run ./tools/genqlient
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/Khan/genqlient/generate"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

func main() {
	if err := run("client/genqlient.yaml"); err != nil {
		log.Fatalf("genqlient: %v", err)
	}
}

func run(config string) error {
	cfg, err := generate.ReadAndValidateConfig(config)
	if err != nil {
		return err
	}
	schema, err := loadSchema(cfg.Schema[0])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "genqlient")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	doc, err := prepare(cfg, schema, dir)
	if err != nil {
		return err
	}
	files, err := generate.Generate(cfg)
	if err != nil {
		return err
	}
	text, err := tidy(files[cfg.Generated], schema, doc)
	if err != nil {
		return err
	}
	return os.WriteFile(cfg.Generated, text, 0o644)
}

func loadSchema(file string) (*ast.Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: filepath.Base(file), Input: string(text)})
	if err != nil {
		return nil, err
	}
	return schema, nil
}
