package policy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/policy"
)

// All usage of a person counts, with any keypair, so more keypairs do not allow more. A limit
// within a project counts only usage in the project, and a limit on a group only usage in the
// group.
func TestLimitsBindPeople(t *testing.T) {
	s := newSite(t)
	second := s.Client.Project.Create().SetName("second").SetDomainID(s.A.ID).SaveX(s.system)
	r := s.Client.Registry.Create().SetName("r").SetHost("r").SaveX(s.system)
	i := s.Client.Image.Create().SetReference("r/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(r).SaveX(s.system)
	n := 0
	holds := func(who *ent.User, p *ent.Project, g *ent.ResourceGroup, key *uuid.UUID, cpu int64) {
		n++
		sess := s.Client.Session.Create().SetName(fmt.Sprint("s", n)).SetType("batch").SetSlots(resource.Slots{"cpu": cpu}).SetStatus(lifecycle.Running).
			SetDomainID(s.A.ID).SetProject(p).SetOwner(who).SetResourceGroup(g).SetImage(i).SetNillableKeypairID(key).SaveX(s.system)
		a := s.Client.Agent.Create().SetName(fmt.Sprint("a", n)).SetResourceGroup(g).SaveX(s.system)
		d := s.Client.Device.Create().SetAgent(a).SetDeviceID("cpu").SetCapacity(resource.Slots{"cpu": 1 << 40}).SaveX(s.system)
		k := s.Client.Kernel.Create().SetSession(sess).SetSlots(sess.Slots).SetAgent(a).SetDomainID(s.A.ID).SetProjectID(p.ID).SetOwnerID(who.ID).SaveX(s.system)
		s.Client.Allocation.Create().SetSlot("cpu").SetAmount(cpu).SetSessionID(sess.ID).SetKernel(k).SetAgentID(a.ID).SetDeviceID(d.ID).
			SetDomainID(s.A.ID).SetProjectID(p.ID).SetOwnerID(who.ID).ExecX(s.system)
	}
	me := s.A.Member
	holds(me, s.A.Project, s.gpu, &s.key.ID, 1000)
	holds(me, s.A.Project, s.cpu, &s.other.ID, 2000)
	holds(me, second, s.gpu, nil, 4000)
	holds(s.A.Lead, s.A.Project, s.gpu, nil, 8000)
	ten := resource.Slots{"cpu": 10_000}
	for name, to := range map[string]policy.AttachResourcePolicyInput{
		"one key":            {Keypair: &s.key.ID},
		"the other key":      {Keypair: &s.other.ID},
		"person":             {User: &me.ID},
		"person on a group":  {User: &me.ID, ResourceGroup: &s.gpu.ID},
		"within":             {User: &me.ID, WithinProject: &s.A.Project.ID},
		"project and group":  {User: &me.ID, WithinProject: &s.A.Project.ID, ResourceGroup: &s.gpu.ID},
		"project":            {Project: &s.A.Project.ID},
		"project on a group": {Project: &s.A.Project.ID, ResourceGroup: &s.cpu.ID},
		"domain":             {Domain: &s.A.ID},
		"another within":     {User: &s.A.Lead.ID, WithinProject: &second.ID},
	} {
		s.attach(t, policy.CreateResourcePolicyInput{Name: name, TotalSlots: ten}, to)
	}
	limits, err := s.All(t.Context(), s.Client)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := s.Usage(t.Context(), s.Client, limits)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range limits {
		used, err := usage.Of(&l)
		if err != nil {
			t.Fatal(err)
		}
		got[l.Policy] = fmt.Sprintf("%s in %d", resource.Format("cpu", used.Slots["cpu"]), used.Sessions)
	}
	if diff := cmp.Diff(map[string]string{
		"one key": "7 in 3", "the other key": "7 in 3", "person": "7 in 3", "person on a group": "5 in 2",
		"within": "3 in 2", "project and group": "1 in 1", "project": "11 in 3", "project on a group": "2 in 1", "domain": "15 in 4", "another within": "0 in 0",
	}, got); diff != "" {
		t.Error(diff)
	}
	// Of limits that apply together, the strictest one is reported, whatever its scope.
	list, err := s.EffectiveLimits(s.root, nil, &s.A.Project.ID, &me.ID, nil)
	if err != nil || len(list) != 1 || list[0].Policy != "domain" || list[0].Assignable != "0" {
		t.Errorf("%+v %v", list, err)
	}
}
