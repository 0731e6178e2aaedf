package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// The usage of folders is measured automatically, and again when it is old. A folder that cannot be
// measured, or whose proxy is disconnected, keeps its values and does not delay others.
func TestFoldersAreMeasured(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	away := clustertest.NewProxyOf(t, c, "s2", storage.VolumeConfig{Name: "away", MountPath: filepath.Join(t.TempDir(), "away")})
	second := c.Client.Volume.Query().Where(volume.Name("away")).OnlyX(c.System(t)).ID
	data := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 10)
	gone := filled(t, d, c.Member, managertest.Vars{"name": "gone"}, 5)
	far := filled(t, away, c.Member, managertest.Vars{"name": "far", "volume": second}, 3)
	holds := func(f *ent.Vfolder, files int64) bool {
		row := d.FolderRow(t, f.ID)
		return row.FileCount != nil && *row.FileCount >= files && row.UsedBytes != nil && *row.UsedBytes > 0 && row.MeasuredAt != nil
	}
	managertest.Eventually(t, "all are measured", func() bool { return holds(data, 10) && holds(gone, 5) && holds(far, 3) })

	if err := os.RemoveAll(filepath.Join(d.Root, gone.Path)); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		for _, root := range []string{filepath.Join(d.Root, data.Path), filepath.Join(away.Root, far.Path)} {
			if err := os.WriteFile(filepath.Join(root, fmt.Sprint("more", i)), []byte("more"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	away.Stop()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, f := range []*ent.Vfolder{gone, far, data} { // the missing folder comes first
		old = old.Add(time.Second)
		c.Client.Vfolder.UpdateOneID(f.ID).SetMeasuredAt(old).ExecX(c.System(t))
	}
	managertest.Eventually(t, "an old measurement is repeated", func() bool { return holds(data, 30) })
	if row := d.FolderRow(t, gone.ID); *row.FileCount < 5 || row.MeasuredAt.Before(old) {
		t.Errorf("the deleted folder: %v", row)
	}
	if row := d.FolderRow(t, far.ID); *row.FileCount >= 20 || row.MeasuredAt.After(old) {
		t.Errorf("a folder with an unavailable proxy: %v", row)
	}
}

// Rates are shown while the product reports them. Outdated rates are never shown.
func TestRatesOfAVolume(t *testing.T) {
	c := clustertest.New(t, 0)
	program := filepath.Join(t.TempDir(), "paced")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/paced").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	root := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	pace := filepath.Join(root, "pace")
	testenv.Replace(t, pace, "12.5")
	clustertest.NewProxyOf(t, c, "s1", storage.VolumeConfig{Name: "main", MountPath: root, Backend: program, Create: true})
	type rates struct {
		WholeCluster                         bool
		WindowSeconds                        float64
		At                                   time.Time
		ReadOpsPerSecond, WriteLatencyMicros *float64
	}
	read := func() *rates {
		var got struct {
			Volumes struct {
				Edges []struct{ Node struct{ Performance *rates } }
			}
		}
		c.Manager.As(t, c.A.Admin).Must(t, `{ volumes { edges { node { performance { wholeCluster windowSeconds at readOpsPerSecond writeLatencyMicros } } } } }`, nil, &got)
		return got.Volumes.Edges[0].Node.Performance
	}
	is := func(ops float64) func() bool {
		return func() bool { p := read(); return p != nil && p.ReadOpsPerSecond != nil && *p.ReadOpsPerSecond == ops }
	}
	managertest.Eventually(t, "rates are known", is(12.5))
	if p := read(); !p.WholeCluster || p.WindowSeconds != 5 || p.WriteLatencyMicros != nil || time.Since(p.At) > time.Minute {
		t.Errorf("%+v", p)
	}
	testenv.Replace(t, pace, "99")
	managertest.Eventually(t, "they change", is(99))
	if err := os.Remove(pace); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "they are known no longer", func() bool { return read() == nil })
	if errs := c.Member.Ask(t, `{ volumes { edges { node { performance { at } } } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("an ordinary user: %s", errs)
	}
}

// Of two proxies of a volume, the one with the healthier state takes precedence.
func TestTheBetterOfTwoProxiesTells(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	vfs := testenv.Plugin(t, "volume/vfs")
	// The name of this proxy sorts before the other name, and its directory is missing.
	bad := clustertest.NewProxyOf(t, c, "a1", storage.VolumeConfig{Name: "main", Backend: vfs, MountPath: filepath.Join(t.TempDir(), "not", "there")})
	admin := c.Manager.As(t, c.Superadmin)
	reported := func() (proxy, health string) {
		var got struct {
			Volumes struct {
				Edges []struct {
					Node struct{ Proxy, Health string }
				}
			}
		}
		admin.Must(t, `{ volumes { edges { node { proxy health } } } }`, nil, &got)
		if len(got.Volumes.Edges) != 1 {
			t.Fatalf("%d volumes", len(got.Volumes.Edges))
		}
		return got.Volumes.Edges[0].Node.Proxy, got.Volumes.Edges[0].Node.Health
	}
	seen := func(name string) bool {
		for _, p := range c.Client.StorageProxy.Query().AllX(c.System(t)) {
			if p.Name == name {
				return true
			}
		}
		return false
	}
	managertest.Eventually(t, "the bad one is there", func() bool { return seen("a1") })
	for range 5 { // the volume is used through the healthy one
		if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": uuid.NewString()}); len(errs) > 0 {
			t.Fatal(errs)
		}
		if proxy, health := reported(); proxy != "s1" || health != "HEALTHY" {
			t.Errorf("%s reports %s", proxy, health)
		}
	}
	d.Stop()
	managertest.Eventually(t, "the unhealthy proxy reports when it is the only one", func() bool {
		proxy, health := reported()
		return proxy == "a1" && health == "UNAVAILABLE"
	})
	if errs := c.Member.Ask(t, clustertest.CreateFolderMutation, managertest.Vars{"in": managertest.Vars{"name": "more"}}, nil); len(errs) == 0 {
		t.Error("a folder was created on an unmounted volume")
	}
	if _, err := os.Stat(bad.Root); !os.IsNotExist(err) {
		t.Errorf("its directory: %v", err)
	}
	d.StartProxy(t, nil)
	managertest.Eventually(t, "the healthy proxy reports again", func() bool {
		proxy, health := reported()
		return proxy == "s1" && health == "HEALTHY"
	})
}
