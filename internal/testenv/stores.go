package testenv

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/service/etcd"
	"github.com/berthhq/berth/internal/service/redis"
)

// Redis starts a server for this test and returns its URL, for go-redis's ParseURL.
func Redis(t testing.TB) string {
	t.Helper()
	dir := freshDir(t, "redis")
	s, err := redis.Start(t.Context(), redis.Config{Dir: dir, Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, dir, s.Stop)
	return s.URL()
}

// Etcd starts a member for this test and returns its endpoint, for clientv3.
func Etcd(t testing.TB) string {
	t.Helper()
	dir := freshDir(t, "etcd")
	s, err := etcd.Start(t.Context(), etcd.Config{Dir: dir, Volatile: true, Logger: logger()})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, dir, s.Stop)
	return s.Endpoint()
}

// stopAtEnd stops a store after the test. A store that waits for a client which the test has left
// open stops in the background.
func stopAtEnd(t testing.TB, dir string, stop func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Logf("store still has clients: %v", err)
			return
		}
		os.RemoveAll(dir)
	})
}
