package discovery

import (
	"context"
	"fmt"
	"maps"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Announce keeps a value under the prefix and id until ctx ends. If the process dies, the value
// vanishes within seconds; if etcd loses the value, it is written again.
func Announce(ctx context.Context, client *clientv3.Client, prefix, id, value string) error {
	for {
		announceOnce(ctx, client, prefix+id, value)
		if ctx.Err() != nil || !pause(ctx) {
			return nil
		}
	}
}

func announceOnce(ctx context.Context, client *clientv3.Client, key, value string) {
	l, err := grant(ctx, client)
	if err != nil {
		return
	}
	defer l.close()
	if _, err := client.Put(l.ctx, key, value, clientv3.WithLease(l.id)); err != nil {
		return
	}
	<-l.ctx.Done()
}

// List returns all values that are announced under the prefix now, by id.
func List(ctx context.Context, client *clientv3.Client, prefix string) (map[string]string, error) {
	res, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	all := map[string]string{}
	for _, kv := range res.Kvs {
		all[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
	}
	return all, nil
}

// Watch sends all values that are announced under the prefix, by id: at the start and after every
// change. A slow reader gets only the newest state. While etcd is unreachable, nothing is sent, so
// no entry vanishes for that reason. The channel is closed after ctx ends.
func Watch(ctx context.Context, client *clientv3.Client, prefix string) <-chan map[string]string {
	out := make(chan map[string]string, 1)
	go func() {
		defer close(out)
		for {
			watchOnce(ctx, client, prefix, out)
			if ctx.Err() != nil || !pause(ctx) {
				return
			}
		}
	}()
	return out
}

// watchOnce reads all keys and follows their changes until the first error.
func watchOnce(ctx context.Context, client *clientv3.Client, prefix string, out chan map[string]string) {
	res, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return
	}
	alive := map[string]string{}
	for _, kv := range res.Kvs {
		alive[strings.TrimPrefix(string(kv.Key), prefix)] = string(kv.Value)
	}
	replace(out, maps.Clone(alive))
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for res := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(res.Header.Revision+1)) {
		if res.Err() != nil {
			return
		}
		for _, e := range res.Events {
			id := strings.TrimPrefix(string(e.Kv.Key), prefix)
			if e.Type == clientv3.EventTypeDelete {
				delete(alive, id)
			} else {
				alive[id] = string(e.Kv.Value)
			}
		}
		if len(res.Events) > 0 {
			replace(out, maps.Clone(alive))
		}
	}
}

// replace puts m into the channel, in place of a value that was not read yet. The channel has only
// one sender.
func replace(out chan map[string]string, m map[string]string) {
	select {
	case <-out:
	default:
	}
	out <- m
}
