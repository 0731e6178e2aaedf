package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/Khan/genqlient/generate"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

const clientPackage = "github.com/berthhq/berth/client."

// document is the data about the operations that tidy needs.
type document struct {
	// operations maps the name of a Go function to its operation.
	operations map[string]*ast.OperationDefinition
	// comments maps the name of a fragment to the comment above it.
	comments map[string]string
}

var (
	definition = regexp.MustCompile(`(?m)^(query|mutation|subscription|fragment) (\w+)`)
	comment    = regexp.MustCompile(`(?m)((?:^# .*\n)+)fragment (\w+)`)
	// node is a query for an object of one type by its id.
	node = regexp.MustCompile(`\bnode\(id: \$id\) \{ \.\.\.(\w+) \}`)
	// whole is a field whose type is that of a fragment.
	whole = regexp.MustCompile(`(\w+(?:: \w+)?(?:\([^(){}]*\))?) \{ (\.\.\.\w+) \}`)
)

// prepare points cfg at copies of the schema and the operations, from which genqlient generates
// less code: node returns the one type that an operation requests, instead of an interface with
// every type. Enums are of one type, and filters are maps.
func prepare(cfg *generate.Config, schema *ast.Schema, dir string) (*document, error) {
	text, err := os.ReadFile(cfg.Schema[0])
	if err != nil {
		return nil, err
	}
	more := "\nextend type Query {\n"
	for _, t := range schema.GetPossibleTypes(schema.Types["Node"]) {
		more += fmt.Sprintf("  node_%s(id: ID!): %s\n", t.Name, t.Name)
	}
	cfg.Schema = generate.StringList{filepath.Join(dir, "schema.graphql")}
	if err := os.WriteFile(cfg.Schema[0], []byte(string(text)+more+"}\n"), 0o600); err != nil {
		return nil, err
	}
	for name, t := range schema.Types {
		switch {
		case t.Kind == ast.Enum:
			cfg.Bindings[name] = &generate.TypeBinding{Type: clientPackage + "Enum"}
		case t.Kind == ast.InputObject && strings.HasSuffix(name, "WhereInput"):
			cfg.Bindings[name] = &generate.TypeBinding{Type: clientPackage + "Where"}
		}
	}
	return prepareOperations(cfg, schema, dir)
}

func prepareOperations(cfg *generate.Config, schema *ast.Schema, dir string) (*document, error) {
	files, err := filepath.Glob(cfg.Operations[0])
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(text)
		all.WriteByte('\n')
	}
	text := all.String()
	query, errs := gqlparser.LoadQueryWithRules(schema, text, rules.NewDefaultRules())
	if errs != nil {
		return nil, errs
	}
	doc := &document{operations: map[string]*ast.OperationDefinition{}, comments: map[string]string{}}
	for _, op := range query.Operations {
		doc.operations[functionName(string(op.Operation), op.Name)] = op
	}
	for _, m := range comment.FindAllStringSubmatch(text, -1) {
		doc.comments[m[2]] = strings.ReplaceAll(m[1], "# ", "// ")
	}
	text = node.ReplaceAllStringFunc(text, func(field string) string {
		name := node.FindStringSubmatch(field)[1]
		return fmt.Sprintf("node: node_%s(id: $id) { ...%s }", query.Fragments.ForName(name).TypeCondition, name)
	})
	text = definition.ReplaceAllStringFunc(text, func(head string) string {
		kind, name, _ := strings.Cut(head, " ")
		if kind != "fragment" {
			name = functionName(kind, name)
		}
		return kind + " " + name
	})
	text = whole.ReplaceAllString(text, "\n# @genqlient(flatten: true)\n$1 {\n$2\n}\n")
	cfg.Operations = generate.StringList{filepath.Join(dir, "operations.graphql")}
	return doc, os.WriteFile(cfg.Operations[0], []byte(text), 0o600)
}

// functionName returns the name of the Go function for an operation, which the client's methods
// call.
func functionName(kind, name string) string {
	if kind == "query" {
		return "query" + name
	}
	return strings.ToLower(name[:1]) + name[1:]
}
