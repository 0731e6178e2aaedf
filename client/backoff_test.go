package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	var b Backoff
	var got []time.Duration
	for i := range 9 {
		if i == 7 {
			b.Reset()
		}
		got = append(got, b.Next())
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms, 200 * ms, 400 * ms}, got); diff != "" {
		t.Error(diff)
	}
}

// A stream without data for longer than the timeout of a lost server is retried when its server
// restarts.
func TestQuietStreamIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		err := persist(t.Context(), nil, func() (bool, error) {
			attempts++
			switch attempts {
			case 1:
				time.Sleep(timeout + time.Minute)
				return false, errCut
			case 2:
				return false, errCut
			}
			return false, nil
		})
		if err != nil || attempts != 3 {
			t.Errorf("%d attempts, %v", attempts, err)
		}
		began := time.Now()
		if err := persist(t.Context(), nil, func() (bool, error) { return false, errCut }); !errors.Is(err, errCut) || time.Since(began) < timeout {
			t.Errorf("a server that never comes back is tried for %s: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := persist(ctx, nil, func() (bool, error) { return false, errCut }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}
