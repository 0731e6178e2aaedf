package policy_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/policy"
)

// site is a world with two groups and keypairs.
type site struct {
	*identitytest.World
	*policy.Service
	system, root context.Context
	gpu, cpu     *ent.ResourceGroup
	key, other   *ent.Keypair // of the member of A
}

func newSite(t *testing.T) *site {
	w := identitytest.New(t)
	s := &site{World: w, Service: policy.New(policy.Config{Client: w.Client, Bus: event.New(nil, nil)}), system: viewer.SystemContext(t.Context()), root: w.As(t, w.Superadmin)}
	s.gpu = w.Client.ResourceGroup.Create().SetName("gpu").SaveX(s.system)
	s.cpu = w.Client.ResourceGroup.Create().SetName("cpu").SaveX(s.system)
	key := func(name string) *ent.Keypair {
		return w.Client.Keypair.Create().SetAccessKey(name).SetName(name).SetSecretSealed([]byte("x")).SetUser(w.A.Member).SaveX(s.system)
	}
	s.key, s.other = key("AK1"), key("AK2")
	return s
}

// attach creates a policy with the name and attaches it.
func (s *site) attach(t *testing.T, in policy.CreateResourcePolicyInput, to policy.AttachResourcePolicyInput) *ent.PolicyAttachment {
	t.Helper()
	made, err := s.CreateResourcePolicy(s.root, in)
	if err != nil {
		t.Fatal(err)
	}
	to.Policy = &made.Policy.ID
	out, err := s.AttachResourcePolicy(s.root, to)
	if err != nil {
		t.Fatal(err)
	}
	return out.Attachment
}

func TestNarrowing(t *testing.T) {
	s := newSite(t)
	second := s.Client.Project.Create().SetName("second").SetDomainID(s.A.ID).SaveX(s.system)
	for name, to := range map[string]policy.AttachResourcePolicyInput{
		"domain":         {Domain: &s.A.ID},
		"domain-gpu":     {Domain: &s.A.ID, ResourceGroup: &s.gpu.ID},
		"project":        {Project: &s.A.Project.ID},
		"project-cpu":    {Project: &s.A.Project.ID, ResourceGroup: &s.cpu.ID},
		"user":           {User: &s.A.Member.ID},
		"user-gpu":       {User: &s.A.Member.ID, ResourceGroup: &s.gpu.ID},
		"user-first":     {User: &s.A.Member.ID, WithinProject: &s.A.Project.ID},
		"user-first-gpu": {User: &s.A.Member.ID, WithinProject: &s.A.Project.ID, ResourceGroup: &s.gpu.ID},
		"user-second":    {User: &s.A.Member.ID, WithinProject: &second.ID},
		"key":            {Keypair: &s.key.ID},
		"key-gpu":        {Keypair: &s.key.ID, ResourceGroup: &s.gpu.ID},
		"other-key":      {Keypair: &s.other.ID},
		"other-user":     {User: &s.A.Lead.ID},
	} {
		s.attach(t, policy.CreateResourcePolicyInput{Name: name}, to)
	}
	first := policy.Place{Domain: s.A.ID, Project: s.A.Project.ID, User: s.A.Member.ID}
	for name, c := range map[string]struct {
		at   func(policy.Place) policy.Place
		want []string
	}{
		"no group": {func(p policy.Place) policy.Place { return p }, []string{"domain", "project", "user", "user-first"}},
		"gpu": {func(p policy.Place) policy.Place { p.Group = s.gpu.ID; return p },
			[]string{"domain", "domain-gpu", "project", "user", "user-first", "user-gpu", "user-first-gpu"}},
		"cpu": {func(p policy.Place) policy.Place { p.Group = s.cpu.ID; return p },
			[]string{"domain", "project", "project-cpu", "user", "user-first"}},
		"another project": {func(p policy.Place) policy.Place { p.Project = second.ID; return p }, []string{"domain", "user", "user-second"}},
		"a keypair": {func(p policy.Place) policy.Place { p.Keypair, p.Group = s.key.ID, s.cpu.ID; return p },
			[]string{"domain", "key", "project", "project-cpu", "user", "user-first"}},
		"nobody": {func(policy.Place) policy.Place { return policy.Place{} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			at := c.at(first)
			got, err := s.Binding(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, l := range got {
				names = append(names, l.Policy)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Error(diff)
			}
			all, err := s.All(t.Context(), s.Client)
			if err != nil {
				t.Fatal(err)
			}
			names = nil
			for _, l := range all {
				if l.Binds(at) {
					names = append(names, l.Policy)
				}
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Error("of all:", diff)
			}
		})
	}
}

func TestAttachReplacesTheSameNarrowing(t *testing.T) {
	s := newSite(t)
	user := &s.A.Member.ID
	s.attach(t, policy.CreateResourcePolicyInput{Name: "one"}, policy.AttachResourcePolicyInput{User: user})
	narrow := s.attach(t, policy.CreateResourcePolicyInput{Name: "two"}, policy.AttachResourcePolicyInput{User: user, ResourceGroup: &s.gpu.ID})
	s.attach(t, policy.CreateResourcePolicyInput{Name: "three"}, policy.AttachResourcePolicyInput{User: user})
	names := func() (out []string) {
		got, err := s.Limits(s.system, s.A.ID, s.A.Project.ID, s.A.Member.ID, s.gpu.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range got {
			out = append(out, l.Policy)
		}
		return out
	}
	if diff := cmp.Diff([]string{"three", "two"}, names()); diff != "" {
		t.Error(diff)
	}
	_, err := s.DetachResourcePolicy(s.As(t, s.A.Member), policy.DetachResourcePolicyInput{ID: narrow.ID})
	want(t, err, problem.CodePermissionDenied, "")
	_, err = s.DetachResourcePolicy(s.As(t, s.B.Admin), policy.DetachResourcePolicyInput{ID: narrow.ID})
	want(t, err, problem.CodeNotFound, "id")
	_, err = s.DeleteResourcePolicy(s.root, policy.DeleteResourcePolicyInput{ID: narrow.PolicyID})
	want(t, err, problem.CodeFailedPrecondition, "id")
	if _, err = s.DetachResourcePolicy(s.As(t, s.A.Admin), policy.DetachResourcePolicyInput{ID: narrow.ID}); err != nil {
		t.Error(err)
	}
	if _, err = s.DeleteResourcePolicy(s.root, policy.DeleteResourcePolicyInput{ID: narrow.PolicyID}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"three"}, names()); diff != "" {
		t.Error(diff)
	}
	// The attachment to a keypair is invisible to the admin who created it.
	key := s.attach(t, policy.CreateResourcePolicyInput{Name: "key"}, policy.AttachResourcePolicyInput{Keypair: &s.key.ID})
	if _, err = s.DetachResourcePolicy(s.As(t, s.A.Admin), policy.DetachResourcePolicyInput{ID: key.ID}); err != nil {
		t.Error(err)
	}
	_, err = s.AttachResourcePolicy(s.As(t, s.B.Admin), policy.AttachResourcePolicyInput{Keypair: &s.key.ID})
	want(t, err, problem.CodeNotFound, "keypair")
	_, err = s.AttachResourcePolicy(s.root, policy.AttachResourcePolicyInput{Domain: &s.A.ID, WithinProject: &s.A.Project.ID})
	want(t, err, problem.CodeInvalidArgument, "withinProject")
}

func TestRefuses(t *testing.T) {
	full := policy.Used{Slots: resource.Slots{"cpu": 1500}, Sessions: 3, Pending: 2, PendingSlots: resource.Slots{"cpu": 500}}
	for name, c := range map[string]struct {
		limit policy.Limit
		ask   policy.Ask
		want  []string // what, used, requested, limit
	}{
		"a request that can fit later": {policy.Limit{TotalSlots: resource.Slots{"cpu": 1000}, Amounts: policy.Amounts{MaxSessions: p(1)}}, policy.Ask{Slots: resource.Slots{"cpu": 1000}}, nil},
		"too much by itself":           {policy.Limit{TotalSlots: resource.Slots{"cpu": 1000}}, policy.Ask{Slots: resource.Slots{"cpu": 1001}}, []string{"cpu 1.5 1.001 1"}},
		"unlisted":                     {policy.Limit{UnlistedZero: true, TotalSlots: resource.Slots{"cpu": 1000}}, policy.Ask{Slots: resource.Slots{"cpu": 1000, "cuda.device": 1}}, []string{"cuda.device 0 1 0"}},
		"no sessions at all":           {policy.Limit{Amounts: policy.Amounts{MaxSessions: p(0)}}, policy.Ask{}, []string{"sessions 3 1 0"}},
		"all at once": {
			policy.Limit{TotalSlots: resource.Slots{"cuda.shares": 0, "cuda.device": 1}, PendingSlots: resource.Slots{"cpu": 999},
				Amounts: policy.Amounts{MaxContainersPerSession: p(1), MaxPriority: p(10), MaxPendingSessions: p(2)}},
			policy.Ask{Slots: resource.Slots{"cpu": 500, "cuda.shares": 500, "cuda.device": 1}, Containers: 2, Priority: 11},
			[]string{"cuda.shares 0 0.5 0", "containers per session 0 2 1", "priority 0 11 10", "pending sessions 2 1 2", "pending cpu 0.5 0.5 0.999"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range c.limit.Refuses(c.ask, full) {
				got = append(got, r.What+" "+r.Used+" "+r.Requested+" "+r.Limit)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEffectiveLimits checks that the strictest limit is returned, among those that the viewer can
// see.
func TestEffectiveLimits(t *testing.T) {
	s := newSite(t)
	s.attach(t, policy.CreateResourcePolicyInput{Name: "wide", TotalSlots: resource.Slots{"cpu": 9000}, Amounts: policy.Amounts{MaxVfolders: p(5)}}, policy.AttachResourcePolicyInput{Domain: &s.A.ID})
	s.attach(t, policy.CreateResourcePolicyInput{Name: "tight", TotalSlots: resource.Slots{"cpu": 2000}}, policy.AttachResourcePolicyInput{User: &s.A.Member.ID, ResourceGroup: &s.gpu.ID})
	at := func(as *ent.User, user, project, group *uuid.UUID) []string {
		list, err := s.EffectiveLimits(s.As(t, as), nil, project, user, group)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range list {
			out = append(out, e.What+" "+e.Used+"/"+e.Limit+" "+e.Policy)
		}
		return out
	}
	if diff := cmp.Diff([]string{"cpu 0/9 wide", "folders 0/5 wide"}, at(s.A.Member, nil, nil, nil)); diff != "" {
		t.Error(diff)
	}
	tight := []string{"cpu 0/2 tight", "folders 0/5 wide"}
	if diff := cmp.Diff(tight, at(s.A.Member, nil, nil, &s.gpu.ID)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(tight, at(s.A.Admin, &s.A.Member.ID, &s.A.Project.ID, &s.gpu.ID)); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		as                    *ent.User
		domain, project, user *uuid.UUID
	}{
		"a fellow":               {as: s.A.Lead, user: &s.A.Member.ID},
		"another domain's user":  {as: s.A.Admin, user: &s.B.Member.ID},
		"another domain":         {as: s.A.Member, domain: &s.B.ID},
		"another domain's group": {as: s.B.Admin, project: &s.A.Project.ID},
	} {
		_, err := s.EffectiveLimits(s.As(t, c.as), c.domain, c.project, c.user, nil)
		if p, _ := problem.From(err); p.Code != problem.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}
