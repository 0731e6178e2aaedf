package discovery

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Campaign stands for election under name until ctx ends. Whenever it wins it
// runs lead, whose ctx ends when the election can no longer be relied on; etcd
// lets nobody else win before that, as long as clocks run at the same speed.
// epoch rises from one leader to the next: writers check it, for the case that
// they do not. When lead returns by itself Campaign resigns and returns lead's
// error; it resigns, too, when ctx ends, and then returns nil.
func Campaign(ctx context.Context, client *clientv3.Client, name, id string, lead func(ctx context.Context, epoch int64) error) error {
	for {
		again, err := campaignOnce(ctx, client, name, id, lead)
		if !again || !pause(ctx) {
			return err
		}
	}
}

// campaignOnce spends one lease. again says that it was lost or never had.
func campaignOnce(ctx context.Context, client *clientv3.Client, name, id string, lead func(context.Context, int64) error) (again bool, err error) {
	l, err := grant(ctx, client)
	if err != nil {
		return ctx.Err() == nil, nil
	}
	defer l.close()
	epoch, err := elect(l, electionPrefix(name), id)
	if err != nil {
		return ctx.Err() == nil, nil
	}
	err = lead(l.ctx, epoch)
	if ctx.Err() != nil {
		return false, nil
	}
	if l.ctx.Err() != nil {
		return true, nil
	}
	return false, err
}

func electionPrefix(name string) string { return "election/" + name + "/" }

// elect queues up and returns when nobody is before us. The place in the queue
// is the revision that made our key, so leaders have rising revisions.
func elect(l *lease, prefix, id string) (epoch int64, err error) {
	key := fmt.Sprintf("%s%016x", prefix, l.id)
	put, err := l.client.Put(l.ctx, key, id, clientv3.WithLease(l.id))
	if err != nil {
		return 0, fmt.Errorf("stand for election: %w", err)
	}
	epoch = put.Header.Revision
	for {
		before, err := l.client.Get(l.ctx, prefix, append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(epoch-1))...)
		if err != nil {
			return 0, fmt.Errorf("look who leads: %w", err)
		}
		if len(before.Kvs) == 0 {
			return epoch, nil
		}
		waitDeleted(l.ctx, l.client, string(before.Kvs[0].Key), before.Header.Revision+1)
		if l.ctx.Err() != nil {
			return 0, l.ctx.Err()
		}
	}
}

// waitDeleted returns when the key is gone, or when it is better to look again.
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

// Leader returns the id that the present leader gave, "" when there is none.
func Leader(ctx context.Context, client *clientv3.Client, name string) (string, error) {
	res, err := client.Get(ctx, electionPrefix(name), clientv3.WithFirstCreate()...)
	if err != nil {
		return "", fmt.Errorf("look who leads: %w", err)
	}
	if len(res.Kvs) == 0 {
		return "", nil
	}
	return string(res.Kvs[0].Value), nil
}
