package policy_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/policy"
)

func want(t *testing.T, err error, code, field string) {
	t.Helper()
	if err == nil {
		if code != "" {
			t.Errorf("accepted, want %s", code)
		}
		return
	}
	if p, _ := problem.From(err); p.Code != code || field != "" && p.Field != field {
		t.Errorf("got %s field %q (%v), want %s field %q", p.Code, p.Field, err, code, field)
	}
}

func p[T any](v T) *T { return &v }

func TestCreateAndUpdate(t *testing.T) {
	w := identitytest.New(t)
	s := policy.New(policy.Config{Client: w.Client, Bus: event.New(nil, nil)})
	for _, c := range []struct {
		name        string
		as          *ent.User
		in          policy.CreateResourcePolicyInput
		code, field string
	}{
		{"by a domain admin", w.A.Admin, policy.CreateResourcePolicyInput{Name: "p"}, problem.CodePermissionDenied, ""},
		{"by a monitor", w.Monitor, policy.CreateResourcePolicyInput{Name: "p"}, problem.CodePermissionDenied, ""},
		{"without a name", w.Superadmin, policy.CreateResourcePolicyInput{}, problem.CodeInvalidArgument, "name"},
		{"negative slots", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p", TotalSlots: resource.Slots{"cpu": -1}}, problem.CodeInvalidArgument, "totalSlots.cpu"},
		{"an invalid slot name", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p", TotalSlots: resource.Slots{"../x": 1}}, problem.CodeInvalidArgument, "totalSlots"},
		{"negative sessions", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p", Amounts: policy.Amounts{MaxSessions: p(-1)}}, problem.CodeInvalidArgument, "maxSessions"},
		{"negative bytes", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p", Amounts: policy.Amounts{MaxScopeBytes: p(int64(-1))}}, problem.CodeInvalidArgument, "maxScopeBytes"},
		{"an idle timeout of zero", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p", Amounts: policy.Amounts{IdleTimeout: p(59)}}, problem.CodeInvalidArgument, "idleTimeout"},
		{"all right", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p", TotalSlots: resource.Slots{"cpu": 2000}, Amounts: policy.Amounts{MaxSessions: p(3)}}, "", ""},
		{"twice", w.Superadmin, policy.CreateResourcePolicyInput{Name: "p"}, problem.CodeAlreadyExists, "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.CreateResourcePolicy(w.As(t, c.as), c.in)
			want(t, err, c.code, c.field)
		})
	}
	root := w.As(t, w.Superadmin)
	id := w.Client.ResourcePolicy.Query().OnlyX(root).ID
	_, err := s.UpdateResourcePolicy(w.As(t, w.A.Admin), policy.UpdateResourcePolicyInput{ID: id, Amounts: policy.Amounts{MaxSessions: p(9)}})
	want(t, err, problem.CodePermissionDenied, "")
	_, err = s.UpdateResourcePolicy(root, policy.UpdateResourcePolicyInput{ID: uuid.New()})
	want(t, err, problem.CodeNotFound, "")
	_, err = s.UpdateResourcePolicy(root, policy.UpdateResourcePolicyInput{ID: id, Amounts: policy.Amounts{MaxSessions: p(-2)}})
	want(t, err, problem.CodeInvalidArgument, "maxSessions")
	out, err := s.UpdateResourcePolicy(root, policy.UpdateResourcePolicyInput{ID: id, Amounts: policy.Amounts{MaxSessions: p(-1), MaxVfolders: p(0)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Policy; got.MaxSessions != nil || got.MaxVfolders == nil || *got.MaxVfolders != 0 || got.TotalSlots["cpu"] != 2000 {
		t.Errorf("policy is %v", got)
	}
}

func TestAttach(t *testing.T) {
	w := identitytest.New(t)
	s := policy.New(policy.Config{Client: w.Client, Bus: event.New(nil, nil)})
	id := &w.Client.ResourcePolicy.Create().SetName("p").SaveX(viewer.SystemContext(t.Context())).ID
	for _, c := range []struct {
		name        string
		as          *ent.User
		in          policy.AttachResourcePolicyInput
		code, field string
	}{
		{"to nothing", w.Superadmin, policy.AttachResourcePolicyInput{Policy: id}, problem.CodeInvalidArgument, ""},
		{"to two", w.Superadmin, policy.AttachResourcePolicyInput{Policy: id, User: &w.A.Member.ID, Domain: &w.A.ID}, problem.CodeInvalidArgument, ""},
		{"nothing", w.Superadmin, policy.AttachResourcePolicyInput{Policy: p(uuid.New()), User: &w.A.Member.ID}, problem.CodeNotFound, "policy"},
		{"to oneself", w.A.Member, policy.AttachResourcePolicyInput{User: &w.A.Member.ID}, problem.CodePermissionDenied, ""},
		{"to a project by its admin", w.A.Lead, policy.AttachResourcePolicyInput{Project: &w.A.Project.ID}, problem.CodePermissionDenied, ""},
		{"to one's domain by its admin", w.A.Admin, policy.AttachResourcePolicyInput{Domain: &w.A.ID}, problem.CodePermissionDenied, ""},
		{"to another domain's user", w.A.Admin, policy.AttachResourcePolicyInput{Policy: id, User: &w.B.Member.ID}, problem.CodeNotFound, ""},
		{"to another domain's project", w.A.Admin, policy.AttachResourcePolicyInput{Policy: id, Project: &w.B.Project.ID}, problem.CodeNotFound, ""},
		{"to another domain", w.A.Admin, policy.AttachResourcePolicyInput{Policy: id, Domain: &w.B.ID}, problem.CodeNotFound, ""},
		{"to a superadmin by a domain admin", w.A.Admin, policy.AttachResourcePolicyInput{Policy: id, User: &w.Superadmin.ID}, problem.CodePermissionDenied, ""},
		{"by a monitor", w.Monitor, policy.AttachResourcePolicyInput{Policy: id, User: &w.A.Member.ID}, problem.CodePermissionDenied, ""},
		{"to a user", w.A.Admin, policy.AttachResourcePolicyInput{Policy: id, User: &w.A.Member.ID}, "", ""},
		{"to a project", w.A.Admin, policy.AttachResourcePolicyInput{Policy: id, Project: &w.A.Project.ID}, "", ""},
		{"to a domain", w.Superadmin, policy.AttachResourcePolicyInput{Policy: id, Domain: &w.A.ID}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.AttachResourcePolicy(w.As(t, c.as), c.in)
			want(t, err, c.code, c.field)
		})
	}
}
