package accelerators

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/internal/testenv"
)

// greedy describes a vendor whose devices require the host's /etc.
const greedy = `key: greedy
vendor: Greedy
products: [{slot: greedy.device, name: Greedy One, unit: card, pci: ["1f56:0330"]}]
nodes: [{path: "sapeon{index}"}]
mounts: [{source: /etc}]
`

// Two plugins are refused with a reason: one that reports wrong devices, and one whose devices
// require the host's /etc. The others work.
func TestBadPlugins(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers, networks and mounts need root")
	}
	dir, faults := t.TempDir(), t.TempDir()
	tree := fixturetest.Start(t, "sapeon-1")
	here, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if other := os.Getenv("BERTH_BIN"); other != "" {
		here = other
	}
	program := filepath.Join(dir, "greedy")
	if err := os.Symlink(filepath.Join(here, "plugins/accelerator/declarative"), program); err != nil {
		t.Fatal(err)
	}
	roots := tree.Roots()
	plugins := fmt.Sprintf(`plugins:
  - {path: %s, force: true, roots: {sys: %s, dev: %s}}
  - {path: %s, force: true, config: {devices: 2, device_nodes: true}, env: {BERTH_MOCK_FAULTS: %s}}
`, program, roots.Sys, roots.Dev, filepath.Join(here, "plugins/accelerator/mock"), faults)
	lie := filepath.Join(faults, "lie")
	for file, text := range map[string]string{
		program + ".yaml": greedy, filepath.Join(dir, "plugins.yaml"): plugins, lie: "duplicate",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := cluster.Start(t, cluster.Options{Machines: []string{"n300-4"}}, "--plugin-file", filepath.Join(dir, "plugins.yaml"))
	u := p.UserAs(t, "SUPERADMIN")
	good, liar := load(t, "n300-4"), load(t, "mock-4")

	takes := &stand{row: row{plugin: "greedy", slot: "greedy.device"}}
	cluster.Eventually(t, "the greedy plugin shows its device", func() bool { return len(takes.devices(u)) > 0 })
	refused := u.Run(takes.asks("1"))
	for _, kind := range []string{"duplicate", "foreign"} {
		// The file is replaced in one step, because a plugin that reads an empty file would report
		// no wrong device.
		testenv.Replace(t, lie, kind)
		said := ""
		waitFor(t, &said, func() bool {
			said = message(t, u, "mock")
			return strings.Contains(said, map[string]string{"duplicate": "twice", "foreign": "cuda.device"}[kind])
		})
		t.Logf("%s: %s", kind, said)
		if all := liar.devices(u); len(all) != 0 {
			t.Errorf("%d devices of the plugin with wrong reports exist", len(all))
		}
		works := u.Run(good.asks("1"))
		good.look(t, u, works.ID)
		u.End(works.ID)
	}

	why := ""
	waitFor(t, &why, func() bool {
		s := u.Show(refused.ID)
		why = s.StatusMessage
		if s.Status == "RUNNING" {
			t.Fatal("a session runs with the host's /etc")
		}
		return strings.Contains(why, "/etc")
	})
	t.Log(why)
	u.End(refused.ID)

	if err := os.Remove(lie); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the plugin's devices exist when its reports are right", func() bool { return len(liar.devices(u)) == 2 })
	honest := u.Run(liar.asks("1"))
	liar.look(t, u, honest.ID)
}

// message returns what the agent reports about a plugin.
func message(t *testing.T, u *cluster.User, name string) string {
	t.Helper()
	agents, err := u.Agents(t.Context(), "")
	if err != nil || len(agents) != 1 {
		t.Fatalf("agents: %v, %v", agents, err)
	}
	a, err := u.Agent(t.Context(), agents[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range a.Plugins {
		if p.Name == name {
			return p.Message
		}
	}
	return ""
}
