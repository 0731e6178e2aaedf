package main

import (
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

// site is an NFS server with project quotas on its disk, and a client of it.
type site struct {
	vmtest.Environment
	disk  string // on the server
	mount string
}

// each runs f on a new VM that is server and client.
func each(t *testing.T, options string, f func(*testing.T, site)) {
	t.Helper()
	server := testvm.XFS("server")
	server.Options += ",allocsize=64k" // otherwise xfs preallocates as much again for a growing file
	m := vmtest.Machine{
		Machine:  testvm.Machine{Disks: []testvm.Disk{server}, Modules: testvm.NFSModules},
		Kinds:    []testvm.Kind{testvm.UML}, // the host's exports are not touched
		Programs: map[string]string{"nfs": "."},
	}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		if err := testvm.ServeNFS(p.Mount("server")); err != nil {
			t.Fatal(err)
		}
		at, err := testvm.MountNFS("volume", options)
		if err != nil {
			t.Fatal(err)
		}
		f(t, site{p, p.Mount("server"), at})
	})
}

// limit sets a project quota on a scope's directory, as the server's administrator would. The
// directory must be empty the first time.
func (s site) limit(t *testing.T, scope string, bytes int64) {
	t.Helper()
	d, err := os.Open(filepath.Join(s.disk, scope))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const project = 7
	if id, _, err := prjquota.Of(d); err != nil || id != project {
		if err := prjquota.Assign(d, project); err != nil {
			t.Fatal(err)
		}
	}
	if err := prjquota.Limit(d, project, bytes, 0); err != nil {
		t.Fatal(err)
	}
}

// open starts the plugin on the mount.
func (s site) open(t *testing.T) *volume.Client {
	t.Helper()
	c, _, err := volumetest.Open(t, s.Program("nfs"), s.mount, `{"usage_max_age_s": 0}`)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func name32(name string) string { return fmt.Sprintf("%x", md5.Sum([]byte(name))) }

// TestVMServersLimit checks that a limit of the server on a scope's directory is reported with the
// server's usage, and not as the volume's size.
func TestVMServersLimit(t *testing.T) {
	each(t, "vers=4.0", func(t *testing.T, s site) {
		c, ctx, scope := s.open(t), t.Context(), name32("limited")
		if _, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: "v", Scope: scope}); err != nil {
			t.Fatal(err)
		}
		get := func() *pb.Scope {
			t.Helper()
			out, err := c.GetScope(ctx, &pb.ScopeRef{Volume: "v", Scope: scope})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if got := get(); got.GetLimit().Bytes != nil {
			t.Errorf("without a limit: %v", got)
		}
		s.limit(t, scope, 32<<20)
		if err := os.WriteFile(filepath.Join(s.mount, scope, "file"), make([]byte, 8<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := get(); got.GetLimit().GetBytes() != 32<<20 || got.GetUsedBytes() < 8<<20 || got.GetUsedBytes() > 9<<20 {
			t.Errorf("with the server's limit: %v", got)
		}
		smaller := int64(10 << 20)
		if _, err := c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: &pb.Limit{Bytes: &smaller}}); err != nil {
			t.Fatal(err)
		}
		if got := get(); got.GetLimit().GetBytes() != smaller {
			t.Errorf("with a smaller one of ours: %v", got)
		}
	})
}

// TestVMHealth checks that mount options are reported, and that those that can lose data are a
// reason.
func TestVMHealth(t *testing.T) {
	for options, want := range map[string]pb.HealthReport_State{
		"vers=4.2": pb.HealthReport_HEALTHY, "vers=4.2,soft": pb.HealthReport_DEGRADED,
	} {
		t.Run(strings.ReplaceAll(options, ",", "-"), func(t *testing.T) {
			each(t, options, func(t *testing.T, s site) {
				h, err := s.open(t).Health(context.Background(), &pb.VolumeRef{Volume: "v"})
				if err != nil || h.State != want || h.Metadata["version"] != "4.2" || h.Metadata["server"] != "127.0.0.1:/" {
					t.Errorf("health %v, %v", h, err)
				}
			})
		})
	}
}

// TestVMServerThatIsGone checks that a server that does not respond makes the volume unavailable,
// does not block calls forever, and is used again after its return.
func TestVMServerThatIsGone(t *testing.T) {
	each(t, "vers=4.2,actimeo=1", func(t *testing.T, s site) {
		c, ctx := s.open(t), t.Context()
		health := func() *pb.HealthReport {
			t.Helper()
			call, cancel := context.WithTimeout(ctx, 25*time.Second)
			defer cancel()
			h, err := c.Health(call, &pb.VolumeRef{Volume: "v"})
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		if h := health(); h.State != pb.HealthReport_HEALTHY {
			t.Fatalf("at first %v", h)
		}
		if err := testvm.StopNFS(); err != nil {
			t.Fatal(err)
		}
		if h := health(); h.State != pb.HealthReport_UNAVAILABLE || !strings.Contains(h.Reason, "answer") {
			t.Errorf("without its server %v", h)
		}
		if _, err := c.GetScope(ctx, &pb.ScopeRef{Volume: "v", Scope: name32("any")}); status.Code(err) != codes.Unavailable {
			t.Errorf("a scope without the server: %v", err)
		}
		if err := testvm.StartNFS(s.disk); err != nil {
			t.Fatal(err)
		}
		wait.For(t, func() error {
			if h := health(); h.State != pb.HealthReport_HEALTHY {
				return fmt.Errorf("the server is back, and the volume is %v", h)
			}
			return nil
		})
	})
}
