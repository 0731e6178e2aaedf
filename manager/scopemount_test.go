package manager_test

import (
	"os"
	"strings"
	"testing"

	"github.com/berthhq/berth/agent/runtime/fake"
	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/manager/managertest"
)

// A session on a machine that cannot mount what its folder lies on does not start there,
// and its history says why.
func TestASessionWhoseScopeIsNotMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	c := newCluster(t, 0)
	d := newDepot(t, c)
	if _, errs := folder(t, c.as, managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	n := &node{name: "a", dir: t.TempDir(), wires: newWires(0), host: fake.NewHost(pulled()), volumes: map[string]string{"main": d.root},
		scopes: map[string]scopemount.Rule{"main": {Type: "btrfs", Source: "/dev/away-{scope}"}}}
	c.nodes = append(c.nodes, n)
	c.join(t, n, c.m)
	id := c.create(t, input(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": "data"}}}, "sleep", "600"))
	managertest.Eventually(t, "the history says why", func() bool {
		return strings.Contains(c.history(t, id), "mount btrfs /dev/away-")
	})
}
