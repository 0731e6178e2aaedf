package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
)

type personKey struct{}

// For returns a context whose statements count for a person. Together, they use at most a share of
// the connections for requests, so that the requests of others are not blocked.
func For(ctx context.Context, person uuid.UUID) context.Context {
	return context.WithValue(ctx, personKey{}, person)
}

// shareOf returns how many of a lane's connections one person can use for reads, and the same
// number again for transactions: three each of fourteen.
func shareOf(conns int) int { return max(2, conns/4) }

// kind of use of a connection. The kinds are counted separately, because a transaction, which has a
// connection, may need another one for a read.
type use int

const (
	reading use = iota
	changing

	uses
)

// shares limit the connections that each person uses.
type shares struct {
	most int // per person and kind; 0: no limit
	of   [uses]Limit
}

// take waits for a place among the connections of the context's person, and returns the function
// that frees it.
func (s *shares) take(ctx context.Context, u use) (giveBack func(), err error) {
	who, ok := ctx.Value(personKey{}).(uuid.UUID)
	if !ok || s.most == 0 || laneOf(ctx) != Requests {
		return func() {}, nil
	}
	wait, stop := context.WithTimeout(ctx, statementTimeout(ctx))
	defer stop()
	giveBack, err = s.of[u].Take(wait, who, s.most)
	if err == nil {
		return giveBack, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, problem.Exhausted("your other requests use all database connections that one user may have").RetryAfter(time.Second)
}
