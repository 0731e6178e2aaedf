package server

import (
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
)

// place rejects a cursor that does not fit a field's list: one of another list, of another
// order, or one that was made up. The database would compare values of different types.
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

// within reports whether a cursor names an object of the list's type, and has a value for each
// part of the order.
func (w *walk) within(c ent.Cursor, f *ast.Field, orderBy any) bool {
	edge := w.schema.Types[f.Definition.Type.Name()].Fields.ForName("edges").Type.Name()
	node := w.schema.Types[w.schema.Types[edge].Fields.ForName("node").Type.Name()]
	if node.Fields.ForName("id") == nil { // the service that reads the list checks its cursors
		return true
	}
	if id.KindOf(c.ID) != w.kindOf(node.Name) {
		return false
	}
	orders, ok := orderBy.([]any)
	if !ok && orderBy != nil {
		orders = []any{orderBy} // a single value counts as a list with one element
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

// sorts reports whether a value has the type of the field of an order, such as CREATED_AT for
// createdAt.
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
	return ok && order == "CREATED_AT" // not every object has the field in the schema
}

// kindOf returns the kind of ids of a node type in the schema.
func (w *walk) kindOf(name string) id.Kind {
	plural := strings.ToLower(name) + "s"
	if stem, ok := strings.CutSuffix(plural, "ys"); ok && !strings.HasSuffix(stem, "e") { // policies, but keys
		plural = stem + "ies"
	}
	for kind, table := range w.tables {
		if strings.ReplaceAll(table, "_", "") == plural {
			return kind
		}
	}
	return 0
}
