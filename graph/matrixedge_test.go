package graph_test

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// edge is a chain of fields from an object to the next object that has an ID, or to a value without
// one. Every field below an object is part of a chain.
type edge struct {
	fields []*ast.FieldDefinition
	leaf   *ast.Definition
}

func (e edge) name() string {
	var names []string
	for _, f := range e.fields {
		names = append(names, f.Name)
	}
	return strings.Join(names, ".")
}

// query selects the chain. The alias of its last field is leaf.
func (e edge) query(args string) string {
	open, end := "", ""
	for i, f := range e.fields {
		open += " " + f.Name
		if i == 0 {
			open += args
		}
		def := schema().Types[f.Type.Name()]
		switch {
		case !object(def):
			return strings.TrimSuffix(open, f.Name) + "leaf: " + f.Name + end
		case def.Fields.ForName("edges") != nil:
			open, end = open+" { totalCount pageInfo { hasNextPage endCursor } edges { node {", "} } }"+end
		default:
			open, end = open+" {", "}"+end
		}
	}
	if isNode(e.leaf) {
		return open + " leaf: id " + end
	}
	return open + " leaf: __typename " + end
}

func object(def *ast.Definition) bool { return def.Kind == ast.Object || def.Kind == ast.Interface }

func isNode(def *ast.Definition) bool { return slices.Contains(def.Interfaces, "Node") }

// edgesOf lists the edges of an object. A chain continues through objects without an ID.
func edgesOf(s *ast.Schema, def *ast.Definition, before []*ast.FieldDefinition) []edge {
	var out []edge
	for _, f := range def.Fields {
		leaf := nodeOf(s, s.Types[f.Type.Name()])
		e := edge{append(slices.Clone(before), f), leaf}
		switch {
		case f.Name[0] == '_' || f.Name == "pageInfo" || requires(f):
		case object(leaf) && isNode(leaf):
			out = append(out, e)
		case object(leaf):
			if len(before) == 0 {
				out = append(out, e)
			}
			out = append(out, edgesOf(s, leaf, e.fields)...)
		case f.Directives.ForName("allow") != nil: // a value that not all viewers can read
			out = append(out, e)
		}
	}
	return out
}

// requires reports whether a field has required arguments.
func requires(f *ast.FieldDefinition) bool {
	return slices.ContainsFunc(f.Arguments, func(a *ast.ArgumentDefinition) bool { return a.Type.NonNull && a.DefaultValue == nil })
}
