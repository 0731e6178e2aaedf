package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/testenv"
)

// published parses the schema files.
func published(t *testing.T) *ast.Schema {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "graph", "*.graphql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no schema: %v", err)
	}
	var sources []*ast.Source
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &ast.Source{Name: f, Input: string(text)})
	}
	return gqlparser.MustLoadSchema(sources...)
}

func TestEveryFieldHasAnAudience(t *testing.T) {
	t.Parallel()
	s := published(t)
	if err := (guard{schema: s}).Validate(nil); err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, def := range s.Types {
		if def.BuiltIn || def.Kind != ast.Object {
			continue
		}
		root := def == s.Query || def == s.Mutation || def == s.Subscription
		for _, f := range def.Fields {
			if f.Name[0] == '_' {
				continue
			}
			fields++
			if who, err := audience(s, def, f); err != nil || !strings.Contains(" ANYONE USER ADMIN SUPERADMIN ", " "+who+" ") {
				t.Errorf("%s.%s: %q, %v", def.Name, f.Name, who, err)
			}
			if !root {
				continue
			}
			kept := f.Directives
			f.Directives = nil
			if (guard{schema: s}).Validate(nil) == nil {
				t.Errorf("without the @allow of %s.%s the guard lets the server start", def.Name, f.Name)
			}
			f.Directives = kept
		}
		if root {
			continue
		}
		kept := def.Directives
		def.Directives = nil
		if (guard{schema: s}).Validate(nil) == nil {
			t.Errorf("without the @allow of %s the guard lets the server start", def.Name)
		}
		def.Directives = kept
	}
	if fields < 200 {
		t.Errorf("%d fields looked at", fields)
	}
}

// A filter applies only to fields of its own row. A condition on related rows could reveal rows
// that the viewer cannot see.
func TestFiltersStayOnTheirRow(t *testing.T) {
	t.Parallel()
	s := published(t)
	inputs := 0
	for name, def := range s.Types {
		if !strings.HasSuffix(name, "WhereInput") {
			continue
		}
		inputs++
		for _, f := range def.Fields {
			of := s.Types[f.Type.Name()]
			if of.Kind == ast.InputObject && of != def || strings.HasPrefix(f.Name, "has") {
				t.Errorf("%s.%s looks at another row", name, f.Name)
			}
			for _, secret := range []string{"password", "hash", "prefix", "key", "path", "incarnation"} {
				if strings.Contains(strings.ToLower(f.Name), secret) && f.Name != "accessKey" {
					t.Errorf("%s.%s mentions an unpublished part of the schema", name, f.Name)
				}
			}
		}
	}
	if inputs < 10 {
		t.Errorf("%d filters looked at", inputs)
	}
}
