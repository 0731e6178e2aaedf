package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/clock"
)

func TestPause(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	if err := clock.Pause(t.Context(), 20*time.Millisecond); err != nil || time.Since(begun) < 20*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := clock.Pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("in a context that has ended: %v", err)
	}
}
