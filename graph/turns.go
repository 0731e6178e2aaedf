package graph

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/problem"
)

const (
	// maxAtOnce bounds the queries and mutations of one person that run at once at one
	// manager. A page that opens asks for a dozen.
	maxAtOnce = 20
	// turnTime is how long one more waits for its turn.
	turnTime = 3 * time.Second
)

// turn waits for the turn of a person's operation, and returns how to end it.
func (r *Resolver) turn(ctx context.Context, who uuid.UUID) (leave func(), err error) {
	wait, stop := context.WithTimeout(ctx, turnTime)
	defer stop()
	leave, err = r.turns.Take(wait, who, maxAtOnce)
	if err == nil || ctx.Err() != nil {
		return leave, err
	}
	return nil, problem.Exhausted("%d of your requests already run at this manager; wait for their answers", maxAtOnce).
		WithLimit(strconv.Itoa(maxAtOnce)).RetryAfter(time.Second)
}
