package integration

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A plugin that cannot scan its hardware shows this to everyone who can see the agent, and a
// superadmin restarts it.
func TestAPluginThatSeesNothing(t *testing.T) {
	c := clustertest.New(t, 0)
	c.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 1, "faults": {"look": "failed mock-smi prints no JSON"}}`)})
	super := c.Manager.As(t, c.Superadmin)
	type plugin struct {
		Name, State, Message string
		Restarts             int
		Checks               []struct{ Name, Level, Text string }
	}
	id := c.AgentID(t, c.Nodes[0])
	look := func() plugin {
		t.Helper()
		var got struct{ Node struct{ Plugins []plugin } }
		super.Must(t, `query($id: ID!) { node(id: $id) { ... on Agent { plugins { name state message restarts checks { name level text } } } } }`, managertest.Vars{"id": id}, &got)
		for _, p := range got.Node.Plugins {
			if p.Name == "mock" {
				return p
			}
		}
		return plugin{}
	}
	managertest.Eventually(t, "the plugin reports why it has no devices", func() bool {
		p := look()
		return p.State == "RUNNING" && p.Message == "mock-smi prints no JSON" &&
			len(p.Checks) == 1 && p.Checks[0].Name == "driver" && p.Checks[0].Level == "ERROR" && p.Checks[0].Text == "mock-smi prints no JSON"
	})
	text := c.Manager.Scrape(t)
	for _, want := range []string{`berth_plugin_up{agent="a",plugin="mock"} 0`, `berth_plugin_failed_checks{agent="a",level="error",plugin="mock"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}

	const restart = `mutation($in: RestartPluginInput!) { restartPlugin(input: $in) { agent { name } } }`
	if errs := super.Ask(t, restart, managertest.Vars{"in": managertest.Vars{"id": id, "plugin": "none"}}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("a plugin that does not exist: %v", errs)
	}
	super.Must(t, restart, managertest.Vars{"in": managertest.Vars{"id": id, "plugin": "mock"}}, nil)
	managertest.Eventually(t, "it runs again", func() bool { p := look(); return p.State == "RUNNING" && p.Restarts == 1 })
	managertest.Eventually(t, "the trail has it", func() bool {
		return c.Client.AuditEntry.Query().Where(auditentry.Action("restartPlugin"), auditentry.Result("OK")).ExistX(c.System(t))
	})
}

// A session whose start waits for a plugin shows this while it waits.
func TestASessionThatWaitsForAPlugin(t *testing.T) {
	c := clustertest.New(t, 0)
	c.Grow(t, 1, agent.PluginConfig{Path: testenv.Plugin(t, "accelerator/mock"), Force: true, ConfigJSON: []byte(`{"devices": 1, "faults": {"hang": "Prepare"}}`)})
	id := c.Create(t, clustertest.SessionInput(managertest.Vars{"slots": managertest.Vars{"cpu": "0.05", "mem": "16m", "mock.device": "1"}}, "sleep", "600"))
	managertest.Eventually(t, "it reports the reason for waiting", func() bool {
		return c.Session(t, id).StatusMessage == "waits for plugin mock to prepare its devices"
	})
}
