package server

import (
	"context"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/manager/audit"
)

// auditLog records what an operation does: every mutation with its own result, and every
// denial, once per field.
type auditLog struct {
	service *audit.Service
	schema  *ast.Schema
}

// recorded lists what is already recorded of one operation.
type recorded struct {
	mu     sync.Mutex
	fields map[string]bool // mutations by response key, denied fields by name
}

type recordedKey struct{}

func (t *recorded) first(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.fields[name]
	t.fields[name] = true
	return !was
}

// operation adds the list of recorded fields to the context.
func (t auditLog) operation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	return next(context.WithValue(ctx, recordedKey{}, &recorded{fields: map[string]bool{}}))
}

// field records a mutation, or a field that is denied.
func (t auditLog) field(ctx context.Context, next graphql.Resolver) (any, error) {
	fc := graphql.GetFieldContext(ctx)
	if !fc.IsResolver && !fc.IsMethod { // a read of memory cannot be denied
		return next(ctx)
	}
	if fc.Object == t.schema.Mutation.Name && fc.Field.Name[0] != '_' {
		return t.mutation(ctx, fc, next)
	}
	begun := time.Now()
	res, err := next(ctx)
	if err == nil {
		return res, nil
	}
	seen, ok := ctx.Value(recordedKey{}).(*recorded)
	if !ok {
		return res, err
	}
	e := result(t.subject(ctx, fc.Field.Field, graphql.GetOperationContext(ctx).Variables, nil), err)
	if fc.Object != t.schema.Query.Name && (t.schema.Subscription == nil || fc.Object != t.schema.Subscription.Name) {
		e.Action = fc.Object + "." + e.Action
	}
	if audit.Denial(e.Result) && seen.first(e.Action) {
		e.Duration = time.Since(begun)
		t.service.Record(ctx, e)
	}
	return res, err
}

// mutation runs a mutation between the two parts of its row. If the first part cannot be
// written, the mutation does not run.
func (t auditLog) mutation(ctx context.Context, fc *graphql.FieldContext, next graphql.Resolver) (any, error) {
	begun := time.Now()
	vars := graphql.GetOperationContext(ctx).Variables
	if seen, ok := ctx.Value(recordedKey{}).(*recorded); ok && !seen.first(fc.Field.Alias) {
		return next(ctx)
	}
	row, err := t.service.Begin(ctx, t.subject(ctx, fc.Field.Field, vars, nil))
	if err != nil {
		return nil, err
	}
	res, err := next(ctx)
	e := t.subject(ctx, fc.Field.Field, vars, res)
	e.Duration = time.Since(begun)
	if err != nil {
		e = result(e, err)
	}
	row.End(ctx, e)
	return res, err
}

// response records the mutations whose arguments are invalid and that therefore did not run.
// The error message can quote the input, so it is left out.
func (t auditLog) response(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	resp := next(ctx)
	seen, ok := ctx.Value(recordedKey{}).(*recorded)
	if resp == nil || !ok {
		return resp
	}
	rc := graphql.GetOperationContext(ctx)
	if rc.Operation == nil || rc.Operation.Operation != ast.Mutation {
		return resp
	}
	for _, f := range roots(rc.Operation.SelectionSet) {
		for _, err := range resp.Errors {
			if len(err.Path) > 0 && err.Path[0] == ast.PathName(f.Alias) && seen.first(f.Alias) {
				e := t.subject(ctx, f, nil, nil)
				e.Result, e.Message = codeOf(err), "the request could not be read or answered"
				t.service.Record(ctx, e)
			}
		}
	}
	return resp
}

// refused records operations that the guard rejects: every mutation of the operation, and of
// other operations the denied field.
func (t auditLog) refused(ctx context.Context, rc *graphql.OperationContext, at *ast.Field, err *gqlerror.Error) {
	fields := roots(rc.Operation.SelectionSet)
	if rc.Operation.Operation != ast.Mutation {
		if !audit.Denial(codeOf(err)) || at == nil {
			return
		}
		fields = []*ast.Field{at}
	}
	for _, f := range fields {
		if f.Name[0] == '_' {
			continue
		}
		e := t.subject(ctx, f, rc.Variables, nil)
		e.Result, e.Message = codeOf(err), err.Message
		t.service.Record(ctx, e)
	}
}

func result(e audit.Entry, err error) audit.Entry {
	p, _ := explain(err)
	e.Result, e.Message = p.Code, p.Message
	if p.Field != "" {
		e.Message = p.Field + ": " + p.Message
	}
	return e
}

func codeOf(err *gqlerror.Error) string {
	code, _ := err.Extensions["code"].(string)
	return code
}

// roots returns the fields at the top of an operation, including those in fragments. Each
// fragment counts once.
func roots(set ast.SelectionSet) []*ast.Field {
	var list []*ast.Field
	spread := map[string]bool{}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, sel := range set {
			switch s := sel.(type) {
			case *ast.Field:
				list = append(list, s)
			case *ast.InlineFragment:
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				if !spread[s.Name] {
					spread[s.Name] = true
					walk(s.Definition.SelectionSet)
				}
			}
		}
	}
	walk(set)
	return list
}
