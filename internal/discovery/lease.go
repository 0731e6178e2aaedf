// Package discovery announces in etcd which processes are alive, and elects leaders: managers and
// storage proxies announce themselves, and managers elect the one that schedules. Manager and
// storage import it.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/internal/clock"
)

const (
	// leaseTTL is how long etcd keeps the keys of a process without renewals. A crash is noticed
	// after at most this time and etcd's half-second check, which is below the 5 s that the
	// platform promises.
	leaseTTL = 4 * time.Second
	renewal  = time.Second
	// A holder gives up this long after it sent the last successful renewal, and so before etcd
	// does. Three renewals can fail in between.
	giveUp = 3200 * time.Millisecond
	// farewell limits the calls at the end.
	farewell = time.Second
)

// lease is a live lease; ctx ends when it can no longer be relied on.
type lease struct {
	id     clientv3.LeaseID
	client *clientv3.Client
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// grant creates a lease and keeps it alive until close or ctx's end.
func grant(ctx context.Context, client *clientv3.Client) (*lease, error) {
	sent := time.Now()
	cctx, stop := context.WithTimeout(ctx, giveUp)
	defer stop()
	res, err := client.Grant(cctx, int64(leaseTTL/time.Second))
	if err != nil {
		return nil, fmt.Errorf("grant lease: %w", err)
	}
	l := &lease{id: res.ID, client: client, done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	go l.keep(sent)
	return l, nil
}

// keep renews until that has failed for too long.
func (l *lease) keep(good time.Time) {
	defer close(l.done)
	defer l.cancel()
	t := time.NewTicker(renewal)
	defer t.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-t.C:
		}
		sent := time.Now()
		ctx, stop := context.WithDeadline(l.ctx, good.Add(giveUp))
		_, err := l.client.KeepAliveOnce(ctx, l.id)
		stop()
		switch {
		case err == nil:
			good = sent
		case errors.Is(err, rpctypes.ErrLeaseNotFound), time.Since(good) >= giveUp:
			return
		}
	}
}

// close revokes the lease, which removes its keys at once.
func (l *lease) close() {
	l.cancel()
	<-l.done
	ctx, stop := context.WithTimeout(context.WithoutCancel(l.ctx), farewell)
	defer stop()
	_, _ = l.client.Revoke(ctx, l.id) // otherwise it expires
}

// pause waits about half a second and reports whether ctx is still good.
func pause(ctx context.Context) bool {
	return clock.Pause(ctx, 250*time.Millisecond+rand.N(500*time.Millisecond)) == nil
}
