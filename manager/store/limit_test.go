package store

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"
)

func TestEachPersonHasALimit(t *testing.T) {
	var l Limit
	me, other := uuid.New(), uuid.New()
	first, ok := l.Try(me, 2)
	if _, again := l.Try(me, 2); !ok || !again {
		t.Fatal("two places are not two")
	}
	if _, ok := l.Try(me, 2); ok {
		t.Error("a third place was given")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Take(ctx, me, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was ended: %v", err)
	}
	if _, ok := l.Try(other, 2); !ok {
		t.Error("one person takes another's places")
	}
	first()
	first() // frees one place, not two
	if _, err := l.Take(t.Context(), me, 2); err != nil {
		t.Error(err)
	}
	if _, ok := l.Try(me, 2); ok {
		t.Error("a place was given back twice")
	}
}

func TestNothingIsKept(t *testing.T) {
	var l Limit
	me := uuid.New()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			leave, err := l.Take(t.Context(), me, 3)
			if err != nil {
				t.Error(err)
				return
			}
			leave()
		})
	}
	all.Wait()
	if len(l.m) != 0 {
		t.Errorf("%d persons are kept", len(l.m))
	}
}
