package graph

import (
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
)

// place refuses a cursor that is no place in a field's list: one of another
// list, of another order, or that someone made. The database would compare
// what cannot be compared.
func (w *walk) place(f *ast.Field, args map[string]any) error {
	for _, name := range []string{"after", "before"} {
		def := f.Definition.Arguments.ForName(name)
		text, given := args[name].(string)
		if def == nil || def.Type.Name() != "Cursor" || !given {
			continue
		}
		var c ent.Cursor
		if c.UnmarshalGQL(text) != nil || !w.within(c, f, args["orderBy"]) {
			return problem.Invalid(f.Name+"."+name, "is not a valid cursor for this list and its order")
		}
	}
	return nil
}

// within reports whether a cursor names an object of the list's type, and has a
// value for each part of the order.
func (w *walk) within(c ent.Cursor, f *ast.Field, orderBy any) bool {
	edge := w.schema.Types[f.Definition.Type.Name()].Fields.ForName("edges").Type.Name()
	node := w.schema.Types[w.schema.Types[edge].Fields.ForName("node").Type.Name()]
	if id.KindOf(c.ID) != kindOf(node.Name) {
		return false
	}
	orders, ok := orderBy.([]any)
	if !ok && orderBy != nil {
		orders = []any{orderBy} // one alone counts as a list of one
	}
	values, ok := c.Value.([]any)
	if !ok && c.Value != nil || len(values) != len(orders) {
		return false
	}
	for i, o := range orders {
		by, _ := o.(map[string]any)
		name, _ := by["field"].(string)
		if !sorts(node, name, values[i]) {
			return false
		}
	}
	return true
}

// sorts reports whether a value can be that of the field which an order names,
// such as CREATED_AT for createdAt.
func sorts(node *ast.Definition, order string, value any) bool {
	for _, f := range node.Fields {
		if !strings.EqualFold(f.Name, strings.ReplaceAll(order, "_", "")) {
			continue
		}
		if value == nil {
			return !f.Type.NonNull
		}
		switch value.(type) {
		case time.Time:
			return f.Type.Name() == "Time"
		case string:
			return f.Type.Name() != "Time"
		}
		return false
	}
	_, ok := value.(time.Time)
	return ok && order == "CREATED_AT" // which not every object shows
}

// kindOf is the kind in the ids of a type that the schema publishes as a node.
func kindOf(name string) id.Kind {
	plural := strings.ToLower(name) + "s"
	if stem, ok := strings.CutSuffix(plural, "ys"); ok && !strings.HasSuffix(stem, "e") { // policies, but keys
		plural = stem + "ies"
	}
	for kind, table := range tables {
		if strings.ReplaceAll(table, "_", "") == plural {
			return kind
		}
	}
	return 0
}
