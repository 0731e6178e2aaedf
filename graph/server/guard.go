package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// Limits of one operation, far above the needs of the web page.
const (
	MaxPage    = 100
	maxDepth   = 14
	maxCost    = 20_000 // upper bound of the objects of an operation
	maxFields  = 1_000  // selections, after fragments are expanded
	maxTokens  = 15_000
	maxBody    = 1 << 20
	listLength = 10 // assumed length of a list without a page size

	maxSchemas     = 20 // __schema and __type
	maxSchemaLists = 3  // nested lists: types, their fields, their arguments
)

// guard checks an operation before it runs: who may read each field, and the limits of depth,
// cost and page size.
type guard struct {
	schema  *ast.Schema
	tables  map[id.Kind]string                                                            // of the nodes
	refused func(context.Context, *graphql.OperationContext, *ast.Field, *gqlerror.Error) // called with every rejection and the root field above it
}

var _ interface {
	graphql.HandlerExtension
	graphql.OperationContextMutator
} = guard{}

// ExtensionName names the extension in gqlgen's errors.
func (guard) ExtensionName() string { return "Guard" }

// Validate makes the start of the server fail if a field of the schema has no audience.
func (g guard) Validate(graphql.ExecutableSchema) error {
	for _, def := range g.schema.Types {
		if def.BuiltIn || def.Kind != ast.Object {
			continue
		}
		root := def == g.schema.Query || def == g.schema.Mutation || def == g.schema.Subscription
		for _, f := range def.Fields {
			if _, err := audience(g.schema, def, f); err != nil {
				return err
			}
			if root && f.Directives.ForName("allow") == nil && f.Name[0] != '_' {
				return fmt.Errorf("%s.%s has no @allow", def.Name, f.Name)
			}
			if def == g.schema.Mutation && scopeOf(f) == "" {
				return fmt.Errorf("%s.%s has no scope for tokens", def.Name, f.Name)
			}
		}
	}
	return nil
}

// audience returns who can select a field, by its own @allow or that of its type.
func audience(schema *ast.Schema, def *ast.Definition, f *ast.FieldDefinition) (string, error) {
	if f.Name == "__typename" {
		return "ANYONE", nil
	}
	if f.Name[0] == '_' { // introspection
		return "USER", nil
	}
	d := f.Directives.ForName("allow")
	if d == nil {
		d = def.Directives.ForName("allow")
	}
	if d == nil {
		return "", fmt.Errorf("%s.%s has no @allow, nor has its type", def.Name, f.Name)
	}
	return d.Arguments.ForName("to").Value.Raw, nil
}

// scopeOf returns the scope that an access token needs for a mutation.
func scopeOf(f *ast.FieldDefinition) access.TokenScope {
	if d := f.Directives.ForName("allow"); d != nil {
		if a := d.Arguments.ForName("scope"); a != nil {
			return access.TokenScope(strings.ToLower(a.Value.Raw))
		}
	}
	return ""
}

// dueFields are available to users who must change a password or enrol a second factor first.
var dueFields = map[string]bool{"viewer": true, "server": true, "changePassword": true, "startTotp": true, "confirmTotp": true}

// MutateOperationContext rejects an operation that breaks a rule.
func (g guard) MutateOperationContext(ctx context.Context, rc *graphql.OperationContext) *gqlerror.Error {
	w := walk{schema: g.schema, tables: g.tables, vars: rc.Variables, viewer: viewer.From(ctx), query: rc.Operation.Operation == ast.Query}
	cost, err := w.cost(rc.Operation.SelectionSet, 1)
	if err == nil && cost > maxCost {
		err = problem.Invalid("query", "may return up to %d objects, which is too many; ask for fewer at once", cost).WithLimit(strconv.Itoa(maxCost))
	}
	if err == nil {
		return nil
	}
	out := present(ctx, err)
	if g.refused != nil {
		g.refused(ctx, rc, w.root, out)
	}
	return out
}

// walk visits every selection of one operation.
type walk struct {
	schema *ast.Schema
	tables map[id.Kind]string
	vars   map[string]any
	viewer *viewer.Viewer
	query  bool

	fields, schemas int // so far
	filters         filters
	root            *ast.Field // the root field of the current selection
}

func (w *walk) cost(set ast.SelectionSet, depth int) (int, error) {
	if depth > maxDepth {
		return 0, problem.Invalid("query", "is nested deeper than %d levels", maxDepth).WithLimit(strconv.Itoa(maxDepth))
	}
	sum := 0
	for _, sel := range set {
		var c int
		var err error
		switch s := sel.(type) {
		case *ast.Field:
			c, err = w.field(s, depth)
		case *ast.InlineFragment:
			c, err = w.cost(s.SelectionSet, depth)
		case *ast.FragmentSpread:
			c, err = w.cost(s.Definition.SelectionSet, depth)
		}
		if err != nil {
			return 0, err
		}
		if sum += c; sum > maxCost {
			return sum, nil
		}
	}
	return sum, nil
}

func (w *walk) field(f *ast.Field, depth int) (int, error) {
	if w.fields++; w.fields > maxFields {
		return 0, problem.Invalid("query", "selects more than %d fields", maxFields).WithLimit(strconv.Itoa(maxFields))
	}
	if depth == 1 {
		w.root = f
	}
	if err := w.allowed(f); err != nil {
		return 0, err
	}
	if f.Name == "__typename" {
		return 0, nil
	}
	if f.Name[0] == '_' {
		return 1, w.introspection(f)
	}
	w.bound(f)
	var args map[string]any
	if len(f.Definition.Arguments) > 0 {
		args = f.ArgumentMap(w.vars)
	}
	times, err := w.times(f, args)
	if err != nil {
		return 0, err
	}
	conditions, err := w.filter(f, args)
	if err != nil {
		return 0, err
	}
	inner, err := w.cost(f.SelectionSet, depth+1)
	if err != nil || len(f.SelectionSet) == 0 {
		return 0, err
	}
	return times*(1+inner) + conditions, nil
}

// introspection allows the queries of usual tools once. The schema refers to itself
// everywhere, so nested lists would grow without limit.
func (w *walk) introspection(f *ast.Field) error {
	if w.schemas++; w.schemas > maxSchemas {
		return problem.Invalid(f.Name, "is selected more than %d times", maxSchemas).WithLimit(strconv.Itoa(maxSchemas))
	}
	return w.introspect(f.SelectionSet, 0)
}

func (w *walk) introspect(set ast.SelectionSet, lists int) error {
	for _, sel := range set {
		var err error
		switch s := sel.(type) {
		case *ast.InlineFragment:
			err = w.introspect(s.SelectionSet, lists)
		case *ast.FragmentSpread:
			err = w.introspect(s.Definition.SelectionSet, lists)
		case *ast.Field:
			inner := lists
			if s.Definition.Type.Elem != nil {
				inner++
			}
			if w.fields++; w.fields > maxFields || inner > maxSchemaLists {
				return problem.Invalid("query", "selects too much of the schema at once")
			}
			err = w.introspect(s.SelectionSet, inner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// times returns the number of objects that a field can return.
func (w *walk) times(f *ast.Field, args map[string]any) (int, error) {
	page := 0
	if err := w.place(f, args); err != nil {
		return 0, err
	}
	for _, name := range []string{"first", "last"} {
		v, ok := args[name]
		if !ok || v == nil {
			continue
		}
		n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
		most := int64(MaxPage)
		if f.Name == "files" || f.Name == "objects" {
			most = 1000
		}
		if err != nil || n < 0 || n > most {
			return 0, problem.Invalid(f.Name+"."+name, "%v is not between 0 and %d", v, most).WithLimit(fmt.Sprint(most))
		}
		page = int(n)
	}
	switch {
	case page > 0:
		return page, nil
	case f.Name == "nodes" && f.ObjectDefinition == w.schema.Query:
		ids, _ := args["ids"].([]any)
		return max(1, len(ids)), nil
	case f.Definition.Type.Elem != nil && !paged[f.Name]:
		return listLength, nil
	}
	return 1, nil
}

// paged lists are as long as their page.
var paged = map[string]bool{"edges": true, "entries": true}

// bound sets the default page size of a connection whose size is a variable without a value,
// and removes a filter that is null. boundLists can do this only for literals.
func (w *walk) bound(f *ast.Field) {
	if where := f.Arguments.ForName("where"); where != nil && where.Value.Kind == ast.Variable {
		if v, set := w.vars[where.Value.Raw]; set && v == nil {
			w.vars[where.Value.Raw] = map[string]any{} // nested lists cannot handle null
		}
	}
	first, last := f.Arguments.ForName("first"), f.Arguments.ForName("last")
	if f.Definition.Arguments.ForName("last") == nil || first == nil && last == nil {
		return
	}
	for _, a := range []*ast.Argument{first, last} {
		if a != nil && (a.Value.Kind != ast.Variable || w.vars[a.Value.Raw] != nil) {
			return
		}
	}
	if first == nil {
		first = last
	}
	w.vars[first.Value.Raw] = int64(defaultPage)
}

var due = map[viewer.Due]string{
	viewer.DuePassword: "change your password first", viewer.DueTOTP: "enrol a second factor first",
}

func (w *walk) allowed(f *ast.Field) error {
	who, err := audience(w.schema, f.ObjectDefinition, f.Definition)
	if err != nil {
		if f.ObjectDefinition.Kind == ast.Interface { // the types of its objects decide
			return nil
		}
		return err
	}
	v := w.viewer
	if who == "ANYONE" {
		return nil
	}
	if v == nil || v.IsAnonymous() {
		return problem.Unauthenticated("log in first")
	}
	root := f.ObjectDefinition == w.schema.Query || f.ObjectDefinition == w.schema.Mutation || f.ObjectDefinition == w.schema.Subscription
	if root && v.Due != "" && !dueFields[f.Name] && f.Name[0] != '_' {
		return problem.Forbidden("%s", due[v.Due]).WithField(string(v.Due))
	}
	if need := scopeOf(f.Definition); f.ObjectDefinition == w.schema.Mutation && !v.Allows(need) {
		return problem.Forbidden("the access token lacks the scope %s", need)
	}
	custom := len(v.Grants) > 0 // services and row rules decide what they can read
	switch {
	case who == "USER", custom, v.Superadmin():
		return nil
	case who == "ADMIN" && v.Role == viewer.RoleAdmin, w.query && v.SeesAll():
		return nil
	}
	return problem.Forbidden("%s.%s is not open to you", f.ObjectDefinition.Name, f.Name)
}
