package integration

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// An agent on which a session runs stays in its resource group, unless it is forced.
func TestABusyAgentIsNotMoved(t *testing.T) {
	c := clustertest.New(t, 1)
	super := c.Manager.As(t, c.Superadmin)
	agent := c.AgentID(t, c.Nodes[0])
	home := c.Client.Agent.GetX(c.System(t), agent).ResourceGroupID
	other := c.Client.ResourceGroup.Create().SetName("other").SaveX(c.System(t)).ID
	move := func(to uuid.UUID, more managertest.Vars) managertest.Errors {
		in := managertest.Vars{"id": agent, "resourceGroup": to}
		for k, v := range more {
			in[k] = v
		}
		return super.Ask(t, `mutation($in: UpdateAgentInput!) { updateAgent(input: $in) { agent { resourceGroup { id } sessionsLeft } } }`, managertest.Vars{"in": in}, nil)
	}
	in := func() uuid.UUID { return c.Client.Agent.GetX(c.System(t), agent).ResourceGroupID }

	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	errs := move(other, nil)
	if errs.Code() != "FAILED_PRECONDITION" || errs[0].Extensions.Field != "resourceGroup" || !strings.Contains(errs[0].Message, "run on agent a: 1; drain the agent first") {
		t.Errorf("moved with a session: %s", errs)
	}
	if in() != home {
		t.Error("it was moved anyway")
	}
	if errs := move(home, managertest.Vars{"schedulable": true}); len(errs) > 0 {
		t.Errorf("moved to where it is: %s", errs)
	}
	if errs := move(other, managertest.Vars{"force": true}); len(errs) > 0 || in() != other {
		t.Errorf("forced: %s", errs)
	}
	if s := c.Session(t, id); s.Status != lifecycle.Running || s.ResourceGroupID != home {
		t.Errorf("the session is %s in group %s", s.Status, s.ResourceGroupID)
	}
	c.Terminate(t, id, true)
	c.WaitForEnd(t, id)
	if errs := move(home, nil); len(errs) > 0 || in() != home {
		t.Errorf("moved without sessions: %s", errs)
	}
}
