package graph_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/manager/managertest"
)

// Every mutation leaves a row in the audit log with its result: success or failure for a permitted
// user, denied for others and for anonymous requests, and an error for an unreadable input.
func TestEveryMutationIsInTheTrail(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	w.Client.Membership.Create().SetUser(w.Superadmin).SetProject(w.A.Project).ExecX(ctx)
	other := w.Client.Project.Create().SetName("other").SetDomain(w.A.Domain).SaveX(ctx)
	w.Client.Membership.Create().SetUser(w.A.Loner).SetProject(other).ExecX(ctx)
	root, monitor, nobody := m.As(t, w.Superadmin), m.As(t, w.Monitor), m.Anonymous()
	done, denied := 0, 0
	for n, mutation := range mutationNames() {
		row, ok := matrix[mutation]
		if !ok {
			t.Errorf("%s has no row in the access matrix", mutation)
			continue
		}
		for i, who := range []struct {
			name string
			*managertest.Client
			user *ent.User
		}{{"superadmin", root, w.Superadmin}, {"monitor", monitor, w.Monitor}, {"nobody", nobody, nil}, {"garbage", root, w.Superadmin}} {
			f := &fixture{World: w, t: t, n: 10_000 + n*10 + i, scope: "domain", owner: w.A.Loner, domain: w.A.Domain, project: other}
			input := row(f)
			query := "mutation { x: " + mutation + " { __typename } }"
			if input != nil {
				query = fmt.Sprintf("mutation($input: %s!) { x: %s(input: $input) { __typename } }", inputOf(mutation), mutation)
			}
			if who.name == "garbage" {
				unread := 0
				for k, v := range input {
					if _, ok := v.(uuid.UUID); ok {
						input[k], unread = "no id", unread+1
					}
				}
				if unread == 0 {
					continue
				}
			}
			before := w.Client.AuditEntry.Query().CountX(ctx)
			errs := who.Ask(t, query, managertest.Vars{"input": input}, nil)
			more := w.Client.AuditEntry.Query().CountX(ctx) - before
			rows := w.Client.AuditEntry.Query().Order(ent.Desc(auditentry.FieldAt), ent.Desc(auditentry.FieldID)).Limit(1).AllX(ctx)
			if more != 1 {
				t.Errorf("%s by %s leaves %d rows (%s)", mutation, who.name, more, errs)
				continue
			}
			e := rows[0]
			want := "OK"
			if len(errs) > 0 {
				want = errs.Code()
			}
			if e.Action != mutation || e.Result != want || e.Entity == "" || e.RequestID == "" || e.ClientAddress == "" || len(errs) > 0 && e.Message == "" {
				t.Errorf("%s by %s, %q: %+v", mutation, who.name, errs, e)
			}
			if len(errs) > 0 && e.RequestID != errs[0].Extensions.RequestID {
				t.Errorf("%s by %s: the row is of request %s, the error of %s", mutation, who.name, e.RequestID, errs[0].Extensions.RequestID)
			}
			if actor := e.ActorID; who.user == nil && actor != nil || who.user != nil && (actor == nil || *actor != who.user.ID || e.ActorEmail != who.user.Email || e.CredentialID == nil) {
				t.Errorf("%s by %s names %v %s", mutation, who.name, actor, e.ActorEmail)
			}
			if named, ok := input["id"].(uuid.UUID); ok && (e.EntityID == nil || *e.EntityID != named) {
				t.Errorf("%s by %s is about %v, not %s", mutation, who.name, e.EntityID, named)
			}
			switch {
			case want == "OK":
				done++
			case want == "PERMISSION_DENIED" || want == "UNAUTHENTICATED":
				denied++
			}
			if who.name == "nobody" && want != "UNAUTHENTICATED" {
				t.Errorf("%s without a login: %s", mutation, errs)
			}
			if errs := who.Ask(t, "{ server { version } }", nil, nil); len(errs) > 0 {
				t.Fatalf("%s by %s: %s", mutation, who.name, errs)
			}
		}
	}
	t.Logf("%d done, %d denied", done, denied)
	if done < 40 || denied < 100 {
		t.Errorf("only %d done and %d denied", done, denied)
	}
	// Denied reads are recorded too, once each.
	member := m.As(t, w.A.Member)
	for _, query := range []string{`{ retention { days } }`, `{ a: identityProviders { totalCount } b: identityProviders { totalCount } }`, `{ invitations { totalCount } }`} {
		before := w.Client.AuditEntry.Query().CountX(ctx)
		if errs := member.Ask(t, query, nil, nil); errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("%s: %s", query, errs)
		}
		if n := w.Client.AuditEntry.Query().CountX(ctx) - before; n != 1 {
			t.Errorf("%s leaves %d rows", query, n)
		}
	}
}
