package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
	"github.com/berthhq/berth/internal/viewer"
)

// audit records every mutation with its result, refused ones too. A record
// that cannot be written does not undo what was done; it is logged.
func (r *Resolver) audit(ctx context.Context, op *ast.OperationDefinition, result, message string) {
	if op == nil || op.Operation != ast.Mutation {
		return
	}
	// The record must be kept although the client may have gone.
	ctx, cancel := context.WithTimeout(viewer.SystemContext(context.WithoutCancel(ctx)), 5*time.Second)
	defer cancel()
	for _, sel := range op.SelectionSet {
		f, ok := sel.(*ast.Field)
		if !ok {
			continue
		}
		c := r.Client.AuditEntry.Create().SetAction(f.Name).SetRequestID(requestid.From(ctx)).SetResult(result).SetMessage(message)
		if actor := actorOf(ctx); actor != nil {
			c.SetActorID(actor.User)
		}
		if err := c.Exec(ctx); err != nil {
			r.Logger.ErrorContext(ctx, "write audit entry", "action", f.Name, "result", result, "error", err)
		}
	}
}

type actorKey struct{}

// withActor keeps who asked, for the record is written by the system.
func withActor(ctx context.Context) context.Context {
	return context.WithValue(ctx, actorKey{}, viewer.From(ctx))
}

func actorOf(ctx context.Context) *viewer.Viewer {
	v, _ := ctx.Value(actorKey{}).(*viewer.Viewer)
	if v == nil || v.IsAnonymous() {
		return nil
	}
	return v
}

// auditResponse records a mutation once its response is known.
func (r *Resolver) auditResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	resp := next(ctx)
	if resp == nil || !graphql.HasOperationContext(ctx) {
		return resp
	}
	result, message := "OK", ""
	if len(resp.Errors) > 0 {
		first := resp.Errors[0]
		result, message = problem.CodeInternal, first.Message
		if code, ok := first.Extensions["code"].(string); ok {
			result = code
		}
	}
	r.audit(withActor(ctx), graphql.GetOperationContext(ctx).Operation, result, message)
	return resp
}
