package stories

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// once fails unless every running kernel has a container on its agent and nowhere else, there is no
// other container, and the platform reports the same.
func once(t *testing.T, berth *cluster.Shell) {
	t.Helper()
	var said, there map[string]string
	t.Cleanup(func() {
		if !maps.Equal(said, there) {
			t.Logf("in the database: %v\non the machine: %v", said, there)
		}
	})
	cluster.Eventually(t, "the running kernels are those with containers", func() bool {
		said, there = placed(t), containers(t)
		return maps.Equal(said, there)
	})
	var audit client.OccupancyAudit
	cluster.Eventually(t, "the manager reaches all agents", func() bool {
		audit = client.OccupancyAudit{}
		read(t, berth.Must("admin", "occupancy", "-o", "json"), &audit) // the command fails if there is a difference
		return len(audit.Silent) == 0
	})
	if audit.Kernels != len(there) || audit.Agents != len(platform.Agents) {
		t.Errorf("the audit of %d containers: %+v", len(there), audit)
	}
}

// placed returns every running kernel with its agent.
func placed(t *testing.T) map[string]string {
	t.Helper()
	admin := platform.Admin(t)
	list, err := admin.Sessions(t.Context(), client.SessionFilter{Live: true})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, s := range list {
		for _, k := range admin.Show(s.ID).Kernels {
			if k.Status == "RUNNING" {
				all[k.ID] = k.Agent.Name
			}
		}
	}
	return all
}

// containers returns the agents of every kernel that has a container on this machine.
func containers(t *testing.T) map[string]string {
	t.Helper()
	found, err := platform.Containers()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for kernel, agents := range found {
		slices.Sort(agents)
		all[kernel] = strings.Join(agents, " and ")
	}
	return all
}
