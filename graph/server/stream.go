package server

import (
	"context"
	"strconv"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

const (
	// maxPerSocket limits the open operations of one WebSocket. The page needs about a dozen.
	maxPerSocket = 50
	// maxPerPerson limits the subscriptions of one user at one manager: enough for ten windows
	// of the page and some programs.
	maxPerPerson = 200
	// maxRefusals is the number of rejections after which a WebSocket is closed, because its
	// client ignores the limit.
	maxRefusals = 100
)

// streams counts the subscriptions at this manager and shares the reads of equal ones.
type streams struct {
	schema    graphql.ExecutableSchema
	fresh     func(context.Context) context.Context // without reads of the resolvers
	meter     *Meter
	presenter graphql.ErrorPresenterFunc
	recover   graphql.RecoverFunc

	open store.Limit // subscriptions of each user

	mu      sync.Mutex
	circles map[circleKey]*circle
}

func newStreams(fresh func(context.Context) context.Context, schema graphql.ExecutableSchema, m *Meter, p graphql.ErrorPresenterFunc, rec graphql.RecoverFunc) *streams {
	return &streams{
		schema: schema, fresh: fresh, meter: m, presenter: p, recover: rec,
		circles: map[circleKey]*circle{},
	}
}

// operation counts an operation, and runs subscriptions on a separate pool of database
// connections.
func (s *streams) operation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	subscribes := graphql.GetOperationContext(ctx).Operation.Operation == ast.Subscription
	if err := s.enter(ctx, subscribes); err != nil {
		errs := gqlerror.List{present(ctx, err)}
		if subscribes {
			s.meter.subscribed(ctx, errs)
		}
		return graphql.OneShot(&graphql.Response{Errors: errs})
	}
	if !subscribes {
		return next(ctx)
	}
	s.meter.subscribed(ctx, nil)
	return s.share(store.On(ctx, store.Streams), next)
}

// enter counts an operation until ctx ends, or returns the limit that is reached.
func (s *streams) enter(ctx context.Context, subscribes bool) error {
	if conn := connectionOf(ctx); conn != nil {
		if err := conn.enter(ctx); err != nil {
			return err
		}
	}
	v := viewer.From(ctx)
	if !subscribes || v == nil {
		return nil
	}
	leave, ok := s.open.Try(v.Person(), maxPerPerson)
	if !ok {
		return problem.Exhausted("you have %d subscriptions open at this manager; close some", maxPerPerson).WithLimit(strconv.Itoa(maxPerPerson))
	}
	context.AfterFunc(ctx, leave)
	return nil
}

func (c *connection) enter(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= maxPerSocket {
		if c.refused++; c.refused == maxRefusals && c.flooded != nil {
			go c.flooded()
		}
		return problem.Exhausted("this connection has %d operations open; complete some", maxPerSocket).WithLimit(strconv.Itoa(maxPerSocket))
	}
	c.open++
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
	})
	return nil
}
