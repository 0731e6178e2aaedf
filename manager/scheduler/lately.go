package scheduler

import (
	"sync"
	"time"
)

// latelyAge is how old a sum over the past may be: next to weeks of it, or to
// thousands of sessions, that is nothing.
const latelyAge = time.Minute

// lately keeps what was read of the past, and reads it anew when it is old.
type lately[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

func (l *lately[T]) get(now time.Time, read func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && now.Sub(l.at) < latelyAge {
		return l.value, nil
	}
	value, err := read()
	if err == nil {
		l.at, l.value = now, value
	}
	return value, err
}
