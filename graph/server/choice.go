package server

import (
	"errors"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/problem"
)

// asChoice adds the valid values to an error about an invalid enum value, and for a variable
// the path of the invalid part. The validator has them only in its message.
func asChoice(schema *ast.Schema, err error) error {
	var g *gqlerror.Error
	if !errors.As(err, &g) || g.Err != nil {
		return err
	}
	value, enum, ok := strings.Cut(g.Message, " is not a valid ")
	if !ok {
		value, enum, _ = strings.Cut(strings.TrimPrefix(g.Message, "Value "), " does not exist in ")
		value, enum = strings.Trim(value, `"`), strings.Trim(strings.TrimSuffix(enum, " enum."), `"`)
	}
	def := schema.Types[enum]
	if def == nil || def.Kind != ast.Enum {
		return err
	}
	var values []string
	for _, v := range def.EnumValues {
		values = append(values, v.Name)
	}
	allowed := strings.Join(values, ", ")
	return &gqlerror.Error{
		Err:  problem.Invalid(partOf(g.Path), "must be one of %s, not %q", allowed, value).WithLimit(allowed),
		Path: g.Path, Locations: g.Locations,
	}
}

// partOf returns the path of a part of a variable without the name of the variable, unless the
// path consists only of the name.
func partOf(path ast.Path) string {
	if len(path) > 0 && path[0] == ast.PathName("variable") {
		path = path[1:]
	}
	if len(path) > 1 {
		path = path[1:]
	}
	return path.String()
}
