package folders

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/simulator/image"
)

var (
	platform *cluster.Spread
	poolless error // error that prevented the creation of the pool
)

// Two storage proxies serve a large disk, a small disk and, if the kernel has btrfs, a pool that
// enforces limits itself.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	opt := cluster.SpreadOptions{Managers: 1, Proxies: 2, Volumes: []cluster.Volume{
		{Name: "disk", Plugin: "vfs", Size: "2g"},
		{Name: "small", Plugin: "vfs", Size: "16m"},
	}}
	pool, err := image.Make(context.Background())
	if err != nil && !errdefs.IsUnavailable(err) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if poolless = err; err == nil {
		defer func() {
			if err := pool.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		opt.Volumes = append(opt.Volumes, cluster.Volume{Name: "pool", Plugin: "btrfs", From: pool.Mount, Options: "quota: full"})
	}
	return cluster.MainSpread(m, opt, &platform)
}

func needsPool(t *testing.T) {
	t.Helper()
	if poolless != nil {
		t.Skip(poolless)
	}
}
