package server

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

// The time limits of operations. When the limit is reached or the client disconnects,
// statements in PostgreSQL are cancelled.
const (
	// DefaultQueryTimeout limits a query if no other value is configured.
	DefaultQueryTimeout = 10 * time.Second
	mutationTimeout     = 30 * time.Second
	longTimeout         = 10 * time.Minute
)

// long mutations wait for registries, for storage proxies that move many files, or change very
// many rows.
var long = map[string]bool{
	"testRegistry": true, "registerImage": true, "importUsers": true, "testObjectStorage": true,
	"createVfolder": true, "moveFiles": true, "copyFiles": true, "deleteFiles": true, "createDirectories": true, "deleteOrphan": true,
	"deleteDomain": true, "deleteProject": true, "deleteUser": true, "auditOccupancy": true,
}

// bounded adds a deadline to queries and mutations, and limits how many run at the same time.
func (s *server) bounded(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	d := s.timeout(graphql.GetOperationContext(ctx))
	if d == 0 {
		return next(ctx)
	}
	if v := viewer.From(ctx); v != nil && !v.IsAnonymous() {
		leave, err := s.turn(ctx, v.Person())
		if err != nil {
			return &graphql.Response{Errors: gqlerror.List{present(ctx, err)}}
		}
		defer leave()
		ctx = store.For(ctx, v.Person())
	}
	ctx, cancel := context.WithTimeout(store.StatementTimeout(ctx, d), d)
	defer cancel()
	return next(ctx)
}

func (s *server) timeout(rc *graphql.OperationContext) time.Duration {
	if rc.Operation == nil {
		return 0
	}
	switch rc.Operation.Operation {
	case ast.Query:
		if s.QueryTimeout > 0 {
			return s.QueryTimeout
		}
		return DefaultQueryTimeout
	case ast.Mutation:
		for _, f := range roots(rc.Operation.SelectionSet) {
			if long[f.Name] {
				return longTimeout
			}
		}
		return mutationTimeout
	}
	return 0
}
