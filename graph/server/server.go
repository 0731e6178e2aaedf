// Package server answers GraphQL requests over HTTP and WebSockets. It checks each operation before the
// resolvers run: who can read each field, limits of size and time, and the audit log.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/store"
)

// defaultPage is the page size of connections without one.
const defaultPage = 50

// Config has what the server needs of the resolvers and of the manager.
type Config struct {
	Schema graphql.ExecutableSchema
	// Init gets the viewer from the payload of the first message of a WebSocket whose request has none.
	Init transport.WebsocketInitFunc
	// Fresh returns a context in which the resolvers have read nothing yet.
	Fresh func(context.Context) context.Context
	// Tables maps the kind in an id to its table, for the kinds that the schema publishes as nodes.
	Tables       map[id.Kind]string
	Audit        *audit.Service
	QueryTimeout time.Duration // 0: DefaultQueryTimeout
	Meter        *Meter        // nil: no metrics
	Logger       *slog.Logger
}

// server answers the operations of one manager.
type server struct {
	Config
	turns store.Limit // concurrent operations of each user
}

// New returns a handler that answers POST (JSON, and SSE for subscriptions) and WebSockets. Requests
// have a viewer in their context.
func New(cfg Config) http.Handler {
	s, schema := &server{Config: cfg}, cfg.Schema
	srv := handler.New(schema)
	srv.AddTransport(transport.Websocket{Implementation: sockets{}, InitFunc: followed(cfg.Init), InitTimeout: 10 * time.Second, KeepAlivePingInterval: 15 * time.Second})
	srv.AddTransport(transport.SSE{KeepAlivePingInterval: 15 * time.Second})
	srv.AddTransport(post{})
	srv.SetQueryCache(pageCache{lru.New[*ast.QueryDocument](1000)})
	srv.SetParserTokenLimit(maxTokens)
	presenter := func(ctx context.Context, err error) *gqlerror.Error {
		return Present(ctx, s.Logger, asChoice(schema.Schema(), err))
	}
	recovered := func(ctx context.Context, panicked any) error {
		s.Logger.ErrorContext(ctx, "panic in a resolver", "panic", panicked)
		return errInternal
	}
	srv.SetErrorPresenter(presenter)
	srv.SetRecoverFunc(recovered)
	srv.SetDisableSuggestion(true)
	srv.Use(extension.Introspection{})
	log := auditLog{service: s.Audit, schema: schema.Schema()}
	meter := s.Meter
	if meter == nil {
		meter = NewMeter(nil)
	}
	srv.Use(guard{schema: schema.Schema(), tables: cfg.Tables, refused: func(ctx context.Context, rc *graphql.OperationContext, at *ast.Field, err *gqlerror.Error) {
		log.refused(ctx, rc, at, err)
		if rc.Operation.Operation == ast.Subscription {
			meter.subscribed(ctx, gqlerror.List{err})
		}
	}})
	srv.AroundOperations(log.operation)
	srv.AroundOperations(newStreams(cfg.Fresh, schema, meter, presenter, recovered).operation)
	srv.AroundFields(outOfSight)
	srv.AroundFields(log.field)
	srv.AroundResponses(meter.response)
	srv.AroundResponses(s.bounded)
	srv.AroundResponses(log.response)
	srv.AroundResponses(func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		return next(cfg.Fresh(ctx))
	})
	return gate(connected(srv))
}

// outOfSight returns null for an edge to a row that the viewer cannot see. If the schema does
// not allow null, it stays an error.
func outOfSight(ctx context.Context, next graphql.Resolver) (any, error) {
	res, err := next(ctx)
	if err == nil || !ent.IsNotFound(err) {
		return res, err
	}
	if fc := graphql.GetFieldContext(ctx); fc.IsResolver || !fc.IsMethod || fc.Field.Definition.Type.NonNull {
		return res, err
	}
	return nil, nil
}

// pageCache sets a page size for connections without first or last, once per query text, so
// that every list has a limit.
type pageCache struct{ *lru.LRU[*ast.QueryDocument] }

// Add sets the page sizes of a document and caches it. The executor calls it before the
// document runs first.
func (c pageCache) Add(ctx context.Context, key string, doc *ast.QueryDocument) {
	for _, op := range doc.Operations {
		boundLists(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		boundLists(f.SelectionSet)
	}
	c.LRU.Add(ctx, key, doc)
}

func boundLists(set ast.SelectionSet) {
	for _, sel := range set {
		switch s := sel.(type) {
		case *ast.InlineFragment:
			boundLists(s.SelectionSet)
		case *ast.Field:
			boundLists(s.SelectionSet)
			if s.Definition == nil || s.Definition.Arguments.ForName("last") == nil {
				continue
			}
			s.Arguments = slices.DeleteFunc(s.Arguments, func(a *ast.Argument) bool {
				return (a.Name == "first" || a.Name == "last" || a.Name == "where") && a.Value.Kind == ast.NullValue
			})
			if s.Arguments.ForName("first") == nil && s.Arguments.ForName("last") == nil {
				def := s.Definition.Arguments.ForName("first")
				s.Arguments = append(s.Arguments, &ast.Argument{Name: "first", Position: s.Position, Value: &ast.Value{
					Raw: strconv.Itoa(defaultPage), Kind: ast.IntValue, Position: s.Position, ExpectedType: def.Type,
				}})
			}
		}
	}
}
