package graph

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/requestid"
)

var errInternal = errors.New("internal error")

// present turns any error into what a client may read: message, class, field,
// limit and the request's id. What is not known to be for people is hidden.
func present(ctx context.Context, err error) *gqlerror.Error {
	p, _ := explain(err)
	ext := map[string]any{"code": p.Code}
	if p.Field != "" {
		ext["field"] = p.Field
	}
	if p.Limit != "" {
		ext["limit"] = p.Limit
	}
	if id := requestid.From(ctx); id != "" {
		ext["requestId"] = id
	}
	return &gqlerror.Error{Message: p.Message, Path: graphql.GetPath(ctx), Extensions: ext}
}

// explain keeps the parser's and validator's own words, which speak of the
// query that the client wrote.
func explain(err error) (problem.Problem, bool) {
	var g *gqlerror.Error
	if errors.As(err, &g) && g.Err == nil {
		return problem.Problem{Code: problem.CodeInvalidArgument, Message: g.Message}, true
	}
	if g != nil && g.Err != nil {
		err = g.Err
	}
	return problem.From(err)
}

func (r *Resolver) presentLogged(ctx context.Context, err error) *gqlerror.Error {
	if _, known := explain(err); !known && ctx.Err() == nil {
		r.Logger.ErrorContext(ctx, "request failed", "error", err)
	}
	out := present(ctx, err)
	var g *gqlerror.Error
	if errors.As(err, &g) {
		out.Path, out.Locations = g.Path, g.Locations
	}
	return out
}
