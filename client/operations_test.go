package client

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// Operations that read a field only for administrators. Every other operation is for all users: a
// field without permission would make the whole operation fail.
var forAdministrators = strings.Fields(`
	CapacityReport Cluster Diagnosis IdentityProviderByName IdentityProviders IdleDryRun Invitations OccupancyAudit Retention ScanResults
	VolumeDetails VolumeGrants VolumeOrphans
`)

func TestOperationsAreOpenToUsers(t *testing.T) {
	schema, doc := published(t)
	var found []string
	for _, op := range doc.Operations {
		if op.Operation != ast.Mutation && restricted(schema, op.SelectionSet) {
			found = append(found, op.Name)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, forAdministrators) {
		t.Errorf("only administrators can run:\n%s\nin the list are:\n%s", strings.Join(found, "\n"), strings.Join(forAdministrators, "\n"))
	}
}

// restricted reports whether a selection has a field that is not open to all users.
func restricted(s *ast.Schema, set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(sel ast.Selection) bool {
		switch sel := sel.(type) {
		case *ast.Field:
			return admins(sel.Definition.Directives) || restricted(s, sel.SelectionSet)
		case *ast.InlineFragment:
			return restricted(s, sel.SelectionSet)
		case *ast.FragmentSpread:
			return restricted(s, sel.Definition.SelectionSet)
		}
		return false
	})
}

func admins(list ast.DirectiveList) bool {
	allow := list.ForName("allow")
	return allow != nil && strings.HasSuffix(allow.Arguments.ForName("to").Value.Raw, "ADMIN")
}

// TestAllMutationsAreOffered checks that the package has every mutation of the API.
func TestAllMutationsAreOffered(t *testing.T) {
	schema, doc := published(t)
	used := map[string]bool{}
	for _, op := range doc.Operations {
		for _, s := range op.SelectionSet {
			if f, ok := s.(*ast.Field); ok {
				used[f.Name] = true
			}
		}
	}
	for _, f := range schema.Mutation.Fields {
		if !used[f.Name] {
			t.Errorf("no operation uses %s", f.Name)
		}
	}
}

// TestOperationsAreSent compares the documents of the functions with the files: tidying what
// genqlient generates must not change an operation.
func TestOperationsAreSent(t *testing.T) {
	schema, doc := published(t)
	text, err := os.ReadFile("generated.go")
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	for i, part := range strings.Split(string(text), "_Operation = `") {
		if i == 0 {
			continue
		}
		query, _, _ := strings.Cut(part, "`")
		got, err := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
		if err != nil {
			t.Errorf("%v in %s", err, query)
			continue
		}
		sent[got.Operations[0].Name] = true
	}
	for _, op := range doc.Operations {
		if !sent[op.Name] {
			t.Errorf("no function sends %s", op.Name)
		}
	}
	if len(sent) != len(doc.Operations) {
		t.Errorf("%d operations are sent, %d are in the files", len(sent), len(doc.Operations))
	}
}

// published returns the schema and all operations, which are valid against it.
func published(t *testing.T) (*ast.Schema, *ast.QueryDocument) {
	t.Helper()
	text, err := os.ReadFile("../schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("operations/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no operations: %v", err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	doc, errs := gqlparser.LoadQueryWithRules(schema, all.String(), rules.NewDefaultRules())
	if errs != nil {
		t.Fatal(errs)
	}
	return schema, doc
}
