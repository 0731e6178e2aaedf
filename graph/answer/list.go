package answer

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Waiting is the set of fields that can wait for a loader.
type Waiting map[Place]bool

// Place is the place of a field in the schema.
type Place struct{ Object, Field string }

// In reports whether a selection contains a field of the set.
func (w Waiting) In(set ast.SelectionSet) bool {
	return some(set, func(f *ast.Field) bool { return w[Place{f.ObjectDefinition.Name, f.Name}] })
}

// some reports whether a field of a selection, at any depth, satisfies a predicate.
func some(set ast.SelectionSet, is func(*ast.Field) bool) bool {
	for _, sel := range set {
		found := false
		switch s := sel.(type) {
		case *ast.Field:
			found = is(s) || some(s.SelectionSet, is)
		case *ast.InlineFragment:
			found = some(s.SelectionSet, is)
		case *ast.FragmentSpread:
			found = some(s.Definition.SelectionSet, is)
		}
		if found {
			return true
		}
	}
	return false
}

// List builds a list. Elements with fields that wait run concurrently, so that a loader
// gets the keys of all elements in one batch. Other elements run in a loop: a goroutine for
// each would cost more than the element.
func List(ctx context.Context, n int, sel ast.SelectionSet, waiting Waiting, write func(context.Context, int) graphql.Marshaler) graphql.Array {
	if n > 1 && waiting.In(sel) {
		return graphql.MarshalSliceConcurrently(ctx, n, 0, false, write)
	}
	list, elements, failed := make(graphql.Array, n), make([]element, n), false
	for i := range elements {
		e := &elements[i]
		e.index, e.field.Index = i, &e.index
		failed = !e.write(graphql.WithFieldContext(ctx, &e.field), list, write) || failed
	}
	if failed {
		return nil
	}
	return list
}

// element is the place of one element in its list.
type element struct {
	index int
	field graphql.FieldContext
}

func (e *element) write(ctx context.Context, list graphql.Array, write func(context.Context, int) graphql.Marshaler) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			graphql.AddError(ctx, graphql.Recover(ctx, r))
			ok = false
		}
	}()
	list[e.index] = write(ctx, e.index)
	return true
}

// WithInputs returns a context with the input types, which ent needs for filters of nested
// lists. The table of all inputs is built only for operations with a filter.
func WithInputs(ctx context.Context, op *ast.OperationDefinition, inputs func() []any) context.Context {
	if !filters(op.SelectionSet) {
		return ctx
	}
	return graphql.WithUnmarshalerMap(ctx, graphql.BuildUnmarshalerMap(inputs()...))
}

// filters reports whether any field of a selection has a filter.
func filters(set ast.SelectionSet) bool {
	return some(set, func(f *ast.Field) bool { return f.Arguments.ForName("where") != nil })
}
