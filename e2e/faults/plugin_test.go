package faults

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// The accelerator plugin is killed, and no session loses anything.
func TestAcceleratorPluginKilled(t *testing.T) {
	u := platform.User(t)
	held := u.Run(shares("0.7"))
	u.Until(held.ID, "RUNNING")
	on := device(t, u, held.ID)

	platform.KillPlugins(t, "accelerator/mock")
	healthy(t, u)
	if s := u.Show(held.ID); s.Status != "RUNNING" {
		t.Errorf("the session is %s: %s", s.Status, s.StatusMessage)
	}
	if now := device(t, u, held.ID); now != on {
		t.Errorf("the session holds %s, before %s", now, on)
	}
	if out, code := u.Exec(held.ID, "echo here"); code != 0 {
		t.Errorf("exec: %s", out)
	}
	// Allocated devices stay allocated, and free devices stay available.
	rest, other := u.Run(shares("0.3")), u.Run(shares("1"))
	u.Until(rest.ID, "RUNNING")
	u.Until(other.ID, "RUNNING")
	if now := device(t, u, rest.ID); now != on {
		t.Errorf("0.3 went to %s, want %s, which has just that", now, on)
	}
	platform.KillPlugins(t, "accelerator/mock")
	for _, s := range []string{held.ID, rest.ID, other.ID} {
		u.End(s)
	}
	healthy(t, u)
	occupied(t, u)
}

func healthy(t *testing.T, u *cluster.User) {
	t.Helper()
	cluster.Eventually(t, "the accelerators are healthy", func() bool {
		var out struct{ Devices struct{ TotalCount int } }
		u.Query(`{ devices(where: {plugin: "mock", health: HEALTHY, allocatable: true}) { totalCount } }`, nil, &out)
		return out.Devices.TotalCount == 2
	})
}

// The volume plugin is killed during uploads, and the uploads are completed as usual.
func TestVolumePluginKilled(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	data := make([]byte, 32<<20)
	_, _ = rand.Read(data)
	if err := os.WriteFile(filepath.Join(berth.Dir, "data"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	berth.Must("folder", "create", "disk")
	put := berth.Command("folder", "put", "disk", "data")
	var output bytes.Buffer
	put.Stderr = &output
	if err := put.Start(); err != nil {
		t.Fatal(err)
	}
	platform.KillPlugins(t, "volume/vfs")
	if err := put.Wait(); err != nil {
		t.Fatalf("upload: %v\n%s", err, output.String())
	}
	platform.KillPlugins(t, "volume/vfs")
	berth.Must("folder", "get", "disk:data", "back")
	if back, err := os.ReadFile(filepath.Join(berth.Dir, "back")); err != nil || !bytes.Equal(back, data) {
		t.Errorf("%d bytes came back, want %d, the same (%v)", len(back), len(data), err)
	}
	berth.Must("folder", "create", "another") // this command needs the plugin
	berth.Must("folder", "delete", "--yes", "disk")
}
