package main

import (
	"fmt"
	"go/constant"
	"go/types"
	"strings"

	"github.com/99designs/gqlgen/codegen/config"
	"github.com/vektah/gqlparser/v2/ast"
)

// word reports whether a type is an enum whose Go constants are words in lower case, as in the
// database, or text. The API has them in capitals, and graph/answer converts them. It returns an
// error if an enum has a value in lower case, or a value without a Go constant.
func word(t *config.TypeReference) (bool, error) {
	def := t.Definition
	if def.Kind != ast.Enum || t.IsSlice() {
		return false, nil
	}
	for _, v := range def.EnumValues {
		if v.Name != strings.ToUpper(v.Name) {
			return false, fmt.Errorf("%s.%s is not in capitals", def.Name, v.Name)
		}
	}
	if plain(t.GO) {
		return true, nil
	}
	known := words(t.GO)
	if len(known) == 0 {
		return false, nil // a number or a struct, which has functions of its own
	}
	for _, v := range def.EnumValues {
		if !known[strings.ToLower(v.Name)] {
			return false, capitals(def, known)
		}
	}
	return true, nil
}

// plain reports whether a type is string, as for values that services store as text.
func plain(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	return types.Identical(t, types.Typ[types.String])
}

// capitals returns an error if the constants differ from the values of an enum.
func capitals(def *ast.Definition, known map[string]bool) error {
	for _, v := range def.EnumValues {
		if !known[v.Name] {
			return fmt.Errorf("no constant of the Go type of %s is %q or %q", def.Name, strings.ToLower(v.Name), v.Name)
		}
	}
	return nil
}

// words returns the values of all constants of a string type.
func words(t types.Type) map[string]bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return nil
	}
	if b, ok := named.Underlying().(*types.Basic); !ok || b.Kind() != types.String {
		return nil
	}
	known := map[string]bool{}
	scope := named.Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(c.Type(), named) {
			known[constant.StringVal(c.Val())] = true
		}
	}
	return known
}
