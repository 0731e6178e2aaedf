package server

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
)

const (
	// maxAtOnce limits the concurrent queries and mutations of one user at one manager.
	// Opening a page needs about a dozen.
	maxAtOnce = 20
	// turnTime is how long a further operation waits for its turn.
	turnTime = 3 * time.Second
)

// turn waits until an operation of a user can run, and returns a function that ends it.
func (s *server) turn(ctx context.Context, who uuid.UUID) (leave func(), err error) {
	wait, stop := context.WithTimeout(ctx, turnTime)
	defer stop()
	leave, err = s.turns.Take(wait, who, maxAtOnce)
	if err == nil || ctx.Err() != nil {
		return leave, err
	}
	return nil, problem.Exhausted("%d of your requests already run at this manager; wait for their answers", maxAtOnce).
		WithLimit(strconv.Itoa(maxAtOnce)).RetryAfter(time.Second)
}
