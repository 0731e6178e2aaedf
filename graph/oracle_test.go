package graph_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/graph/exec"
)

// A filter tells one bit of what it filters on. So a list may be filtered and
// sorted only by what its objects show to anyone who sees them at all.
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
				t.Errorf("%s.%s filters by what %s does not show to all who see it", name, f.Name, object)
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
				t.Errorf("%s.%s sorts by what %s does not show to all who see it", name, v.Name, object)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d filters looked at", checked)
	}
}

// shown reports whether a filter's name is a field of the object, or the id of
// one, with a predicate at its end, and that the field is as open as the object.
func shown(object *ast.Definition, filter string) bool {
	filter = strings.ToLower(filter)
	if filter == "createdat" { // ids sort by it anyway
		return true
	}
	// Filters that are named otherwise than the field that shows the same.
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
