package graph_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/graph/exec"
)

// A filter reveals whether a value matches. So lists can be filtered and sorted only by fields that
// every viewer of the object can read.
func TestFiltersAndOrdersAreNoOracle(t *testing.T) {
	t.Parallel()
	schema := exec.NewExecutableSchema(exec.Config{}).Schema()
	checked := 0
	for name, def := range schema.Types {
		object, ok := strings.CutSuffix(name, "WhereInput")
		if !ok || schema.Types[object] == nil {
			continue
		}
		for _, f := range def.Fields {
			if f.Name == "not" || f.Name == "and" || f.Name == "or" {
				continue
			}
			checked++
			if !shown(schema.Types[object], f.Name) {
				t.Errorf("%s.%s filters by a field that not every viewer of %s can read", name, f.Name, object)
			}
		}
	}
	for name, def := range schema.Types {
		object, ok := strings.CutSuffix(name, "OrderField")
		if !ok || schema.Types[object] == nil {
			continue
		}
		for _, v := range def.EnumValues {
			checked++
			if !shown(schema.Types[object], strings.ReplaceAll(strings.ToLower(v.Name), "_", "")) {
				t.Errorf("%s.%s sorts by a field that not every viewer of %s can read", name, v.Name, object)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d filters looked at", checked)
	}
}

// shown reports whether a filter's name is a field of the object, or its id, followed by a
// predicate, and whether every viewer of the object can read that field.
func shown(object *ast.Definition, filter string) bool {
	filter = strings.ToLower(filter)
	if filter == "createdat" { // the order of ids is the same
		return true
	}
	// Filters with a name other than that of their field.
	if other, ok := map[string]string{"Session.tag": "tags", "SessionArray.tag": "sessions", "SessionArray.live": "counts", "User.memberof": "memberships",
		"ResourceGroupAccess.holder": "user", "ResourceGroupAccess.namecontainsfold": "user"}[object.Name+"."+filter]; ok {
		filter = other
	}
	for _, f := range object.Fields {
		if f.Directives.ForName("allow") != nil {
			continue
		}
		name := strings.ToLower(f.Name)
		rest, ok := strings.CutPrefix(filter, name)
		if !ok {
			continue
		}
		switch rest {
		case "", "id", "idin", "idneq", "idisnil", "in", "notin", "neq", "isnil", "notnil", "contains", "containsfold", "hasprefix", "equalfold", "gt", "gte", "lt", "lte":
			return true
		}
	}
	return false
}
