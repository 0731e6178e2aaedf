package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A session does not start on a machine that cannot mount the volume of its folder, and its history
// has the reason.
func TestASessionWhoseScopeIsNotMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	n := &clustertest.Node{Name: "a", Dir: t.TempDir(), Network: clustertest.NewFakeNetwork(0), Host: fake.NewHost(clustertest.PulledImage()), Volumes: map[string]string{"main": d.Root},
		ScopeMounts: map[string]scopemount.Rule{"main": {Type: "btrfs", Source: "/dev/away-{scope}"}}}
	c.Nodes = append(c.Nodes, n)
	c.Join(t, n, c.Manager)
	id := c.Create(t, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": "data"}}}, "sleep", "600"))
	managertest.Eventually(t, "the history has the reason", func() bool {
		return strings.Contains(c.History(t, id), "mount btrfs /dev/away-")
	})
}
