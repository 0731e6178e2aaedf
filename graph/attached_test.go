package graph_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/managertest"
)

// A policy lists its attachments, and a resource group its grants. Each viewer sees the ones that
// they are permitted to see.
func TestWhereRulesAreAttached(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	f := &fixture{World: w, t: t, owner: w.A.Member, domain: w.A.Domain, project: w.A.Project}
	sys, key := w.System(t), f.keypair()
	p := w.Client.ResourcePolicy.Create().SetName("bound").SaveX(sys)
	w.Client.PolicyAttachment.Create().SetPolicy(p).SetKeypairID(key).ExecX(sys)
	w.Client.PolicyAttachment.Create().SetPolicy(p).SetProject(w.A.Project).ExecX(sys)
	w.Client.PolicyAttachment.Create().SetPolicy(p).SetProject(w.B.Project).ExecX(sys)
	w.Client.GroupGrant.Create().SetResourceGroup(w.Group).SetKeypairID(key).ExecX(sys)
	for _, c := range []struct {
		as              *ent.User
		attached, named int // number of attachments, and of keypairs among them, that the viewer sees
		changes         bool
	}{
		{w.Superadmin, 3, 1, true},
		{w.Monitor, 3, 1, false},
		{w.A.Admin, 1, 0, false},
		{w.A.Member, 2, 1, false},
	} {
		var got struct {
			Node struct {
				Permissions []string
				Attachments []struct {
					KeypairID *uuid.UUID
					Keypair   *struct{ AccessKey string }
				}
			}
		}
		m.As(t, c.as).Must(t, `query($id: ID!) { node(id: $id) { ... on ResourcePolicy { permissions attachments { keypairID keypair { accessKey } } } } }`, managertest.Vars{"id": p.ID}, &got)
		named := 0
		for _, a := range got.Node.Attachments {
			if a.Keypair != nil && a.KeypairID != nil && *a.KeypairID == key {
				named++
			}
		}
		if len(got.Node.Attachments) != c.attached || named != c.named {
			t.Errorf("%s sees %d attachments, %d keypairs; want %d, %d", c.as.Username, len(got.Node.Attachments), named, c.attached, c.named)
		}
		if changes := len(got.Node.Permissions) > 1; changes != c.changes {
			t.Errorf("%s may %v the policy", c.as.Username, got.Node.Permissions)
		}
	}
	var grants struct {
		Node struct {
			Grants []struct {
				KeypairID *uuid.UUID
				Keypair   *struct{ ID uuid.UUID }
			}
		}
	}
	m.As(t, w.Monitor).Must(t, `query($id: ID!) { node(id: $id) { ... on ResourceGroup { grants { keypairID keypair { id } } } } }`, managertest.Vars{"id": w.Group.ID}, &grants)
	found := false
	for _, g := range grants.Node.Grants {
		found = found || g.KeypairID != nil && *g.KeypairID == key && g.Keypair != nil && g.Keypair.ID == key
	}
	if !found {
		t.Errorf("the keypair is not among the grants: %+v", grants.Node.Grants)
	}
}

// A monitor can read everything that administrators can read, and change nothing.
func TestMonitorReadsWhatAdminsRead(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	monitor, member := m.As(t, w.Monitor), m.As(t, w.A.Member)
	for _, q := range []string{`{ volumes { edges { node { grants { id permissions } } } } }`, `{ invitations { totalCount } }`} {
		monitor.Must(t, q, nil, nil)
		if errs := member.Ask(t, q, nil, nil); errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("a member sends %s: %s", q, errs)
		}
	}
	if errs := monitor.Ask(t, `mutation { createResourcePolicy(input: {name: "mine"}) { policy { id } } }`, nil, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a monitor makes a policy: %s", errs)
	}
}
