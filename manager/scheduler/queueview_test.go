package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/scheduler"
)

// TestWhoLeavesAQueueDoesNotWait makes one caller read the queues, which takes long. Other callers
// wait for the result until their context ends.
func TestWhoLeavesAQueueDoesNotWait(t *testing.T) {
	client, db := identitytest.Store(t)
	b := newHarness(t, client, db)
	a := scheduler.NewAdvisor(b.scheduler, client, b.sessions)
	unlock, hangs := identitytest.Lock(t, db, "sessions")
	read := make(chan error, 1)
	go func() {
		_, err := a.Queue(b.system(t), b.group.ID)
		read <- err
	}()
	hangs()
	ctx, leave := context.WithCancel(b.system(t))
	left := make(chan error, 1)
	awaited := make(chan bool, 1)
	go func() {
		_, err := a.Queue(ctx, b.group.ID)
		left <- err
	}()
	go func() { awaited <- a.Await(ctx, time.Now()) }()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller whose context ended got %v", err)
	}
	if <-awaited {
		t.Error("a caller whose context ended gets changes")
	}
	unlock()
	if err := <-read; err != nil {
		t.Error(err)
	}
}
