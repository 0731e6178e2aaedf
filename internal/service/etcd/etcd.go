// Package etcd runs a single-member etcd inside this process, reached through a unix socket that
// only this user can use. berthd up and tests import it; a production manager gets the addresses of
// a real cluster.
package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/berthhq/berth/internal/service/proc"
)

const socket = "client.sock"

// etcd stores presence, elections and settings: kilobytes.
const (
	quota        = 128 << 20
	walSegment   = 4 << 20
	keepVersions = "1000"
	startTimeout = 30 * time.Second
)

// Config is the configuration of the member.
type Config struct {
	Dir string
	// Volatile skips fsync: a crash of the machine loses data. For tests.
	Volatile bool
	Logger   *slog.Logger
}

// Server is a running etcd member.
type Server struct {
	room *proc.Room
	etcd *embed.Etcd
	done chan struct{}
	stop func()
}

// The segment size is a variable of package wal, which reads it whenever it creates a log.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = walSegment })

// Start runs the member and returns when it is its own leader.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	smallSegments()
	room, err := proc.OpenRoom(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	log := zapCore{logger: cfg.Logger.With("child", "etcd"), serving: new(atomic.Bool)}
	e, err := embed.StartEtcd(options(cfg, room, log))
	if err != nil {
		room.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	s := &Server{room: room, etcd: e, done: make(chan struct{})}
	s.stop = sync.OnceFunc(func() {
		log.serving.Store(false)
		go func() {
			e.Close()
			room.Close()
			close(s.done)
		}()
	})
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
		log.serving.Store(true)
		return s, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.stop()
	<-s.done
	return nil, fmt.Errorf("start etcd: %w: %w", errdefs.ErrUnavailable, err)
}

// Endpoint is the member's address for a client.
func (s *Server) Endpoint() string { return "unix://" + s.room.Socket(socket) }

// Done is closed after Stop.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop ends the member. Close every client first: etcd waits for seconds for open streams. After
// the end of ctx, it continues to stop in the background.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop etcd: %w", ctx.Err())
	}
}

func options(cfg Config, room *proc.Room, log zapCore) *embed.Config {
	o := embed.NewConfig()
	o.Name = "local"
	o.Dir = filepath.Join(room.Path(), "data")
	o.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(log))
	// A peer address is required, although there is no peer. Only the listener takes its path from
	// Host; the advertised name is fixed, so that the data can move to another path.
	peer := url.URL{Scheme: "unix", Host: "none"}
	o.AdvertisePeerUrls = []url.URL{peer}
	o.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: room.Socket("peer.sock")}}
	o.InitialCluster = o.Name + "=" + peer.String()
	client := url.URL{Scheme: "unix", Path: room.Socket(socket)}
	o.ListenClientUrls = []url.URL{client}
	o.AdvertiseClientUrls = []url.URL{client}
	// A single member can elect itself quickly; elections are most of the start. Every tick has a
	// small cost, which does not matter in a test.
	o.TickMs, o.ElectionMs = 50, 250
	if cfg.Volatile {
		o.TickMs, o.ElectionMs = 20, 100
	}
	o.QuotaBackendBytes = quota
	o.SnapshotCount = 2000
	o.MaxSnapFiles, o.MaxWalFiles = 2, 2
	o.AutoCompactionMode, o.AutoCompactionRetention = "revision", keepVersions
	o.EnableGRPCGateway = false
	o.UnsafeNoFsync = cfg.Volatile
	_ = os.Remove(room.Socket(socket)) // left by a process that was killed
	return o
}
