package scheduler

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// latelyAge is how old a sum over the past may be: next to weeks of it, or to
// thousands of sessions, that is nothing.
const latelyAge = time.Minute

// lately keeps what was read of the past, and reads it again when it is old. One
// reads at a time; who waits for that stops when their context ends.
type lately[T any] struct {
	turn  *semaphore.Weighted
	at    time.Time
	value T
}

func newLately[T any]() *lately[T] { return &lately[T]{turn: semaphore.NewWeighted(1)} }

func (l *lately[T]) get(ctx context.Context, now time.Time, read func() (T, error)) (value T, err error) {
	if err := l.turn.Acquire(ctx, 1); err != nil {
		return value, err
	}
	defer l.turn.Release(1)
	if !l.at.IsZero() && now.Sub(l.at) < latelyAge {
		return l.value, nil
	}
	if value, err = read(); err == nil {
		l.at, l.value = now, value
	}
	return value, err
}
