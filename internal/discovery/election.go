package discovery

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is the leadership after a won election.
type Term struct {
	// Revision is the revision of etcd at which the winner entered the election. It grows from
	// leader to leader as long as etcd keeps its data.
	Revision int64

	lease       *lease
	prefix, key string
}

// Confirm returns nil if etcd confirms the leadership, and Aborted if another process may
// lead.
func (t *Term) Confirm(ctx context.Context) error {
	first, err := t.lease.client.Get(ctx, t.prefix, clientv3.WithFirstCreate()...)
	if err != nil {
		return fmt.Errorf("read the leader: %w", err)
	}
	if len(first.Kvs) == 0 || string(first.Kvs[0].Key) != t.key || t.lease.ctx.Err() != nil {
		return fmt.Errorf("the election of revision %d was lost: %w", t.Revision, errdefs.ErrAborted)
	}
	return nil
}

// Announce replaces the value that Leader returns, until the leadership ends.
func (t *Term) Announce(ctx context.Context, value string) error {
	_, err := t.lease.client.Put(ctx, t.key, value, clientv3.WithLease(t.lease.id))
	if err != nil {
		return fmt.Errorf("announce the leader: %w", err)
	}
	return nil
}

// Campaign stands for election under name until ctx ends. Until Announce is called, Leader returns
// value while this process leads. After each won election it runs lead, whose ctx ends when the
// election can no longer be relied on; etcd lets no other process win before that, as long as
// clocks run at the same speed. In case they do not, writers check an epoch that the leader derives
// from its Term. When lead returns by itself, Campaign resigns and returns lead's error; when ctx
// ends, it resigns too, and returns nil.
func Campaign(ctx context.Context, client *clientv3.Client, name, value string, lead func(ctx context.Context, t *Term) error) error {
	for {
		again, err := campaignOnce(ctx, client, name, value, lead)
		if !again || !pause(ctx) {
			return err
		}
	}
}

// campaignOnce uses one lease. again reports whether the lease was lost or could not be
// created.
func campaignOnce(ctx context.Context, client *clientv3.Client, name, value string, lead func(context.Context, *Term) error) (again bool, err error) {
	l, err := grant(ctx, client)
	if err != nil {
		return ctx.Err() == nil, nil
	}
	defer l.close()
	t, err := elect(l, electionPrefix(name), value)
	if err != nil {
		return ctx.Err() == nil, nil
	}
	err = lead(l.ctx, t)
	if ctx.Err() != nil {
		return false, nil
	}
	if l.ctx.Err() != nil {
		return true, nil
	}
	return false, err
}

func electionPrefix(name string) string { return "election/" + name + "/" }

// elect queues up and returns when no other process is ahead in the queue. The place in the queue
// is the revision that created our key, so the revisions of successive leaders grow.
func elect(l *lease, prefix, value string) (*Term, error) {
	key := fmt.Sprintf("%s%016x", prefix, l.id)
	put, err := l.client.Put(l.ctx, key, value, clientv3.WithLease(l.id))
	if err != nil {
		return nil, fmt.Errorf("stand for election: %w", err)
	}
	t := &Term{Revision: put.Header.Revision, lease: l, prefix: prefix, key: key}
	for {
		before, err := l.client.Get(l.ctx, prefix, append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(t.Revision-1))...)
		if err != nil {
			return nil, fmt.Errorf("read the leader: %w", err)
		}
		if len(before.Kvs) == 0 {
			return t, nil
		}
		waitDeleted(l.ctx, l.client, string(before.Kvs[0].Key), before.Header.Revision+1)
		if l.ctx.Err() != nil {
			return nil, l.ctx.Err()
		}
	}
}

// waitDeleted returns when the key has been deleted, or when the caller should check again.
func waitDeleted(ctx context.Context, client *clientv3.Client, key string, revision int64) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for res := range client.Watch(ctx, key, clientv3.WithRev(revision), clientv3.WithFilterPut()) {
		if len(res.Events) > 0 {
			return
		}
		if res.Err() != nil {
			break
		}
	}
	pause(ctx)
}

// Leader returns the value of the present leader, or "" if there is none.
func Leader(ctx context.Context, client *clientv3.Client, name string) (string, error) {
	res, err := client.Get(ctx, electionPrefix(name), clientv3.WithFirstCreate()...)
	if err != nil {
		return "", fmt.Errorf("read the leader: %w", err)
	}
	if len(res.Kvs) == 0 {
		return "", nil
	}
	return string(res.Kvs[0].Value), nil
}
