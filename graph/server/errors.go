package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/requestid"
)

var errInternal = errors.New("internal error")

// present converts an error to the one that the client gets: message, class, field, limit and
// the request's id. The message of an unknown error is hidden.
func present(ctx context.Context, err error) *gqlerror.Error {
	p, _ := explain(err)
	ext := map[string]any{"code": p.Code}
	if p.Field != "" {
		ext["field"] = p.Field
	}
	if p.Limit != "" {
		ext["limit"] = p.Limit
	}
	if p.RetryAfter > 0 {
		ext["retryAfter"] = int(math.Ceil(p.RetryAfter.Seconds()))
	}
	if len(p.Reached) > 0 {
		ext["limits"] = limitsOf(p.Reached)
	}
	if id := requestid.From(ctx); id != "" {
		ext["requestId"] = id
	}
	return &gqlerror.Error{Err: err, Message: p.Message, Path: graphql.GetPath(ctx), Extensions: ext}
}

// limitsOf converts limits to the fields of the type LimitReached.
func limitsOf(reached []report.LimitReached) []map[string]string {
	list := make([]map[string]string, 0, len(reached))
	for _, l := range reached {
		list = append(list, map[string]string{
			"scope": strings.ToUpper(l.Scope), "holder": l.Holder, "resourceGroup": l.ResourceGroup, "withinProject": l.WithinProject,
			"policy": l.Policy, "what": l.What, "used": l.Used, "requested": l.Requested, "limit": l.Limit,
		})
	}
	return list
}

// explain keeps the messages of the parser and the validator, which are about the client's own
// query.
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

// asArgument adds the error class to an error about an invalid argument. The path of such an
// error continues below the field's path, to the part of the input.
func asArgument(ctx context.Context, err error) error {
	var g *gqlerror.Error
	field := graphql.GetPath(ctx)
	if !errors.As(err, &g) || g.Err == nil || len(g.Path) <= len(field) {
		return err
	}
	if _, known := problem.From(g.Err); known {
		return err
	}
	var own ast.Path
	for _, part := range g.Path[len(field):] {
		if name, ok := part.(ast.PathName); !ok || name != "input" || len(own) > 0 {
			own = append(own, part)
		}
	}
	return &gqlerror.Error{Err: problem.Invalid(own.String(), "%s", g.Err), Path: field}
}

// asFilter adds the error class to an error about a filter with an empty part. ent has one
// such error for each type, which only the beginning of the message identifies.
func asFilter(err error) error {
	var g *gqlerror.Error
	if !errors.As(err, &g) || g.Err == nil || !strings.HasPrefix(g.Err.Error(), "ent: empty predicate") {
		return err
	}
	return &gqlerror.Error{Err: problem.Invalid("where", "contains a filter without a condition"), Path: g.Path, Locations: g.Locations}
}

// Present converts an error to the one that the client gets, and logs it if its message is hidden.
func Present(ctx context.Context, log *slog.Logger, err error) *gqlerror.Error {
	err = asFilter(asArgument(ctx, err))
	if _, known := explain(err); !known && ctx.Err() == nil {
		log.ErrorContext(ctx, "request failed", "error", err)
	}
	out := present(ctx, err)
	var g *gqlerror.Error
	if errors.As(err, &g) {
		out.Path, out.Locations = g.Path, g.Locations
	}
	return out
}
