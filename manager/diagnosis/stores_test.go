package diagnosis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/internal/clock"
)

// A store that does not answer is a fault, and a check that fails is one too.
func TestStoresThatAreAway(t *testing.T) {
	t.Parallel()
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer away.Close()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, DialTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	s := New(Config{Redis: away, Etcd: etcd})
	broken := func(context.Context) ([]Finding, error) { return nil, errors.New("broken") }
	for _, c := range []check{{RedisCheck, s.redis}, {EtcdCheck, s.etcd}, {TasksCheck, broken}} {
		list := c.findings(t.Context())
		if len(list) != 1 || list[0].Check != c.name || list[0].Severity != Fault || list[0].Consequence == "" || list[0].Fix == "" {
			t.Errorf("%s: %+v", c.name, list)
		}
	}
}

func TestAnAuthorityThatEnds(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]Severity{time.Hour: Warning, 365 * 24 * time.Hour: Fine} {
		s := New(Config{Authority: func() time.Time { return clock.Now().Add(left) }})
		if list, err := s.certificates(t.Context()); err != nil || len(list) != 1 || list[0].Severity != want {
			t.Errorf("%s left: %+v, %v", left, list, err)
		}
	}
}

func TestInfoOfRedis(t *testing.T) {
	t.Parallel()
	info := infoOf("# Server\r\nredis_version:7.2.1\r\n\r\n# Memory\r\nused_memory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n")
	if info["redis_version"] != "7.2.1" || number(info["used_memory"]) != 1<<20 || number(info["none"]) != 0 || !strings.HasPrefix(info["maxmemory_policy"], "allkeys") {
		t.Errorf("%v", info)
	}
}
