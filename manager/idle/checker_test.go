package idle

import (
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/idlechecker"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/session"
)

func TestOptionsAreRefusedByName(t *testing.T) {
	b := newBed(t)
	root := b.As(t, b.Superadmin)
	n := func(n int) *int { return &n }
	measured := func(kind idlechecker.Kind, list ...*Threshold) CreateIdleCheckerInput {
		return CreateIdleCheckerInput{Name: "x", Kind: kind, Timeout: 600, Terms: Terms{Thresholds: list}}
	}
	with := func(change func(*CreateIdleCheckerInput)) CreateIdleCheckerInput {
		in := network("x", 600)
		change(&in)
		return in
	}
	for _, c := range []struct {
		name, field string
		in          CreateIdleCheckerInput
	}{
		{"no name", "name", network("", 600)},
		{"no kind", "kind", CreateIdleCheckerInput{Name: "x", Timeout: 600}},
		{"less than a minute", "timeout", network("x", 59)},
		{"more than a year", "timeout", network("x", longest+1)},
		{"grace before the start", "grace", with(func(in *CreateIdleCheckerInput) { in.Grace = n(-1) })},
		{"grace of new users without end", "newUserGrace", with(func(in *CreateIdleCheckerInput) { in.NewUserGrace = n(longest + 1) })},
		{"a warning as long as the timeout", "warning", with(func(in *CreateIdleCheckerInput) { in.Warning = n(601) })},
		{"without session types", "sessionTypes", with(func(in *CreateIdleCheckerInput) { in.SessionTypes = []string{} })},
		{"unknown session types", "sessionTypes[1]", with(func(in *CreateIdleCheckerInput) { in.SessionTypes = []string{"batch", "inference"} })},
		{"thresholds of traffic", "thresholds", with(func(in *CreateIdleCheckerInput) { in.Thresholds = []*Threshold{{"cpu", 1}} })},
		{"no threshold", "thresholds", measured(idlechecker.KindUtilization)},
		{"an unknown slot", "thresholds[1].slot", measured(idlechecker.KindUtilization, &Threshold{"cpu", 1}, &Threshold{"npu", 1})},
		{"a slot in place of its kind", "thresholds[0].slot", measured(idlechecker.KindUtilization, &Threshold{"cuda.shares", 1})},
		{"twice", "thresholds[1].slot", measured(idlechecker.KindUtilization, &Threshold{"cpu", 1}, &Threshold{"cpu", 2})},
		{"more than 100 percent", "thresholds[0].percent", measured(idlechecker.KindUtilization, &Threshold{"cpu", 100.5})},
		{"a negative percentage", "thresholds[0].percent", measured(idlechecker.KindUtilization, &Threshold{"cpu", -1})},
		{"no number", "thresholds[0].percent", measured(idlechecker.KindUtilization, &Threshold{"cpu", math.NaN()})},
		{"memory of a slot without memory", "thresholds[0].slot", measured(idlechecker.KindMemory, &Threshold{"mem", 1})},
		{"valid", "", measured(idlechecker.KindMemory, &Threshold{"cuda", 0})},
		{"a name that is taken", "name", network("x", 600)},
	} {
		_, err := b.lead.CreateIdleChecker(root, c.in)
		p, _ := problem.From(err)
		if (err == nil) != (c.field == "") || err != nil && p.Field != c.field {
			t.Errorf("%s: %v (field %q), want %q", c.name, err, p.Field, c.field)
		}
		if c.name == "unknown session types" && !strings.Contains(err.Error(), "interactive, batch") {
			t.Errorf("%s: %v names no allowed type", c.name, err)
		}
	}
	kept := b.Client.IdleChecker.Query().OnlyX(root)
	if kept.Warning != 300 || !kept.Enabled || kept.SessionTypes[0] != "interactive" || kept.Thresholds["cuda"] != 0 {
		t.Errorf("kept %+v", kept)
	}
	if _, err := b.lead.UpdateIdleChecker(root, UpdateIdleCheckerInput{ID: kept.ID, Timeout: n(120)}); problemField(err) != "warning" {
		t.Errorf("a timeout below the warning: %v", err)
	}
	if _, err := b.lead.AttachIdleChecker(root, AttachIdleCheckerInput{Checker: kept.ID, Domain: &b.A.Domain.ID, Project: &b.A.Project.ID}); problemField(err) != "input" {
		t.Errorf("two places: %v", err)
	}
	none := uuid.New()
	if _, err := b.lead.AttachIdleChecker(root, AttachIdleCheckerInput{Checker: kept.ID, ResourceGroup: &none}); problemField(err) != "resourceGroup" {
		t.Errorf("no place: %v", err)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	b := newBed(t)
	root, admin := b.As(t, b.Superadmin), b.As(t, b.A.Admin)
	mine, theirs := b.checker(t, network("mine", 600)), b.checker(t, network("theirs", 600))
	for c, in := range map[*uuid.UUID]*uuid.UUID{&mine.ID: &b.A.Project.ID, &theirs.ID: &b.B.Project.ID} {
		if _, err := b.lead.AttachIdleChecker(root, AttachIdleCheckerInput{Checker: *c, Project: in}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.lead.DetachIdleChecker(root, DetachIdleCheckerInput{Checker: *c}); err != nil {
			t.Fatal(err)
		}
	}
	if names := b.Client.IdleChecker.Query().AllX(admin); len(names) != 1 || names[0].ID != mine.ID {
		t.Errorf("the domain's admin sees %v", names)
	}
	if _, err := b.lead.UpdateIdleChecker(admin, UpdateIdleCheckerInput{ID: mine.ID}); problemCode(err) != problem.CodePermissionDenied {
		t.Errorf("the domain's admin changes a checker of the system: %v", err)
	}
	if _, err := b.lead.DeleteIdleChecker(admin, DeleteIdleCheckerInput{ID: theirs.ID}); problemCode(err) != problem.CodeNotFound {
		t.Errorf("the domain's admin deletes an invisible checker: %v", err)
	}
	id := b.running(t, "one", nil)
	for _, c := range []struct {
		who  *ent.User
		want string
	}{
		{b.A.Member, problem.CodePermissionDenied}, {b.A.Lead, problem.CodePermissionDenied}, {b.Monitor, problem.CodePermissionDenied},
		{b.B.Admin, problem.CodeNotFound}, {b.A.Admin, ""},
	} {
		_, err := b.lead.Sessions.SetSessionIdleExempt(b.As(t, c.who), session.SetSessionIdleExemptInput{ID: id, Exempt: true})
		if problemCode(err) != c.want {
			t.Errorf("%s exempts: %v, want %q", c.who.Email, err, c.want)
		}
	}
	if _, err := b.lead.DeleteIdleChecker(root, DeleteIdleCheckerInput{ID: mine.ID}); err != nil {
		t.Fatal(err)
	}
	if n := b.Client.IdleBinding.Query().CountX(root); n != 1 {
		t.Errorf("%d bindings are left", n)
	}
}

func problemField(err error) string {
	p, _ := problem.From(err)
	return p.Field
}
