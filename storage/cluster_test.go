package storage_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"

	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// A proxy joins a manager with its join token, reports through the tunnel, and needs no token after
// a restart.
func TestCluster(t *testing.T) {
	ca, err := cluster.LoadOrCreateCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	used := false
	reports := make(chan *storagepb.Report, 16)
	hub := cluster.NewHub(cluster.HubConfig{
		CA: ca,
		Join: func(_ context.Context, token, role, name string) error {
			mu.Lock()
			defer mu.Unlock()
			if used || token != "secret" || role != cluster.RoleStorage || name != "s1" {
				return fmt.Errorf("token: %w", errdefs.ErrPermissionDenied)
			}
			used = true
			return nil
		},
		Managers: func() []string { return []string{l.Addr().String()} },
		OnPeer: func(ctx context.Context, p *cluster.Peer) {
			watch, err := storagepb.NewStorageClient(p.Conn).Watch(ctx, &storagepb.WatchRequest{Managers: []string{l.Addr().String()}})
			if err != nil {
				t.Error(err)
				return
			}
			for {
				r, err := watch.Recv()
				if err != nil {
					return
				}
				reports <- r
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := hub.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	defer cancel()

	cfg := storage.Config{
		Name: "s1", Dir: t.TempDir(), Managers: []string{l.Addr().String()}, JoinToken: "secret", CAFingerprint: ca.Fingerprint(),
		Volumes: []storage.VolumeConfig{{Name: "main", Backend: storagetest.VFS, MountPath: t.TempDir(), Create: true}},
	}
	before := "" // the incarnation that was there before
	for range 2 {
		p, err := storage.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(running) }()
		r := &storagepb.Report{Incarnation: before}
		for r.Incarnation == before {
			select {
			case r = <-reports:
			case err := <-ended:
				t.Fatalf("ended: %v", err)
			case <-time.After(storagetest.Timeout):
				t.Fatal("no report")
			}
		}
		if before = r.Incarnation; r.Name != "s1" || len(r.Volumes) != 1 {
			t.Errorf("report %v", r)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended: %v", err)
		}
		wantNoMount(t, cfg.Volumes[0].MountPath)
		cfg.JoinToken = ""
	}
	cfg.Dir, cfg.JoinToken = t.TempDir(), "guessed"
	p, err := storage.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	limited, stop := context.WithTimeout(ctx, storagetest.Timeout)
	defer stop()
	if err := p.Run(limited); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a guessed token: %v", err)
	}
	wantNoMount(t, cfg.Volumes[0].MountPath)
}

// wantNoMount checks that a proxy that has ended left no mount of a volume.
func wantNoMount(t *testing.T, path string) {
	t.Helper()
	if mounted, err := mountinfo.Mounted(path); err != nil || mounted {
		t.Errorf("%s is a mount point: %v, %v", path, mounted, err)
	}
}
