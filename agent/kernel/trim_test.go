package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/logs"
)

// An agent without a manager retains a limited number of ended kernels, the latest ones. Kernels
// that have just ended are not removed.
func TestEndedKernelsAreBounded(t *testing.T) {
	f := newFixture(t)
	const kernels, kept = 30, 10
	for i := range kernels {
		id := fmt.Sprintf("k%02d", i)
		if _, err := f.Create(t.Context(), request(id, "exit", "0")); err != nil {
			t.Fatal(err)
		}
		f.ended(t, id)
		k, err := f.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		w, err := logs.NewWriter(k.LogDir(), 1000, 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		k.mu.Lock()
		k.rec.state.ExitedUnixMs = time.Unix(int64(1000+i), 0).UnixMilli()
		k.mu.Unlock()
	}
	now := time.Unix(1000+kernels, 0)
	f.cfg.EndedKernels, f.cfg.EndedLogBytes = kept, 100*kernels
	if err := f.trim(now); err != nil {
		t.Fatal(err)
	}
	if n := len(f.List()); n != kernels {
		t.Errorf("%d kernels are left, although all ended less than an hour ago", n)
	}
	f.cfg.EndedLogBytes = 550
	if err := f.trim(now.Add(2 * trimAfter)); err != nil {
		t.Fatal(err)
	}
	left := f.List()
	if len(left) != kept || left[0].ID != "k20" || left[kept-1].ID != "k29" {
		t.Errorf("left: %d, from %s to %s", len(left), left[0].ID, left[len(left)-1].ID)
	}
	for _, k := range left {
		if err := k.LogKept(); (k.ID < "k25") != errdefs.IsFailedPrecondition(err) {
			t.Errorf("log of %s: %v", k.ID, err)
		}
	}
	if dirs, err := os.ReadDir(filepath.Join(f.dir, "kernels")); err != nil || len(dirs) != kept {
		t.Errorf("%d directories: %v", len(dirs), err)
	}
	f.restart(t)
	if n := len(f.List()); n != kept {
		t.Errorf("%d kernels after a restart", n)
	}
}
