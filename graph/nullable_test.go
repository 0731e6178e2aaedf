package graph_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// TestNullHasAMeaning checks that the description of each nullable field, or of its type, explains
// null, and that the description of each optional input field explains its absence.
func TestNullHasAMeaning(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, def := range schema().Types {
		if def.BuiltIn || name[0] == '_' || strings.HasSuffix(name, "Connection") || strings.HasSuffix(name, "Edge") || strings.HasSuffix(name, "WhereInput") {
			continue
		}
		for _, f := range def.Fields {
			if f.Type.NonNull || f.Name[0] == '_' || f.DefaultValue != nil {
				continue
			}
			checked++
			text := strings.ToLower(f.Description + " " + def.Description)
			switch {
			case def.Kind == ast.Object && !strings.Contains(text, "null"):
				t.Errorf("%s.%s: its description does not explain null", name, f.Name)
			case def.Kind == ast.InputObject && !saysDefault(text):
				t.Errorf("%s.%s: its description does not explain its absence", name, f.Name)
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d fields are nullable: is the schema read?", checked)
	}
}

func saysDefault(text string) bool {
	for _, word := range []string{"default", "null", "without", "required", "at most one", "exactly one", "only the given fields"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
