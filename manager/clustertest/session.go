package clustertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/manager/managertest"
)

// WaitForReason waits until the reason why a session is pending contains a text.
func (c *Cluster) WaitForReason(t *testing.T, id uuid.UUID, text string) {
	t.Helper()
	managertest.Eventually(t, "reason with "+text, func() bool {
		s := c.Session(t, id)
		if s.Status != lifecycle.Pending {
			t.Fatalf("session is %s (%s), want pending: %s\n%s", s.Status, s.StatusMessage, text, c.History(t, id))
		}
		return s.Pending != nil && strings.Contains(s.Pending.Summary, text)
	})
}

// SessionInput returns the input of a small session that runs prog with a command.
func SessionInput(change managertest.Vars, command ...string) managertest.Vars {
	in := managertest.Vars{"image": "prog:latest", "slots": managertest.Vars{"cpu": "0.05", "mem": "16m"}}
	if len(command) > 0 {
		in["command"] = append([]string{"/bin/prog"}, command...)
	}
	for k, v := range change {
		in[k] = v
	}
	return in
}

// CreateSessionMutation is the document that creates a session.
const CreateSessionMutation = `mutation($in: CreateSessionInput!) { createSession(input: $in) { session { id } } }`

// Create creates a session of the member and returns its ID.
func (c *Cluster) Create(t *testing.T, in managertest.Vars) uuid.UUID {
	t.Helper()
	id, errs := TryCreate(t, c.Member, in)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return id
}

// TryCreate creates a session as a client and returns its ID, or the errors of the answer.
func TryCreate(t *testing.T, as *managertest.Client, in managertest.Vars) (uuid.UUID, managertest.Errors) {
	t.Helper()
	var got struct {
		CreateSession struct{ Session struct{ ID uuid.UUID } }
	}
	errs := as.Ask(t, CreateSessionMutation, managertest.Vars{"in": in}, &got)
	return got.CreateSession.Session.ID, errs
}

// Terminate ends a session as the member.
func (c *Cluster) Terminate(t *testing.T, id uuid.UUID, force bool) managertest.Errors {
	t.Helper()
	return c.Member.Ask(t, `mutation($id: ID!, $f: Boolean) { terminateSession(input: {id: $id, force: $f}) { session { status } } }`,
		managertest.Vars{"id": id, "f": force}, nil)
}

// Session returns the row of a session.
func (c *Cluster) Session(t *testing.T, id uuid.UUID) *ent.Session {
	t.Helper()
	return c.Client.Session.GetX(c.System(t), id)
}

// WaitFor waits until a session has a status. It fails at once when the session has another final status.
func (c *Cluster) WaitFor(t *testing.T, id uuid.UUID, want lifecycle.Status) *ent.Session {
	t.Helper()
	var s *ent.Session
	wait.For(t, func() error {
		if s = c.Session(t, id); s.Status == want {
			return nil
		}
		err := fmt.Errorf("session is %s (%s), want %s\n%s", s.Status, s.StatusMessage, want, c.History(t, id))
		if s.Status.Final() {
			t.Fatal(err)
		}
		return err
	})
	return s
}

// WaitForEnd waits until a session has a final status, without the pauses before new attempts.
func (c *Cluster) WaitForEnd(t *testing.T, id uuid.UUID) *ent.Session {
	t.Helper()
	managertest.Eventually(t, "session ends", func() bool {
		// Backoff is not waited for.
		c.Client.Session.UpdateOneID(id).ClearRetryAt().ExecX(c.System(t))
		return c.Session(t, id).Status.Final()
	})
	return c.Session(t, id)
}

// History returns the history of a session as text, one line an entry.
func (c *Cluster) History(t *testing.T, id uuid.UUID) (text string) {
	t.Helper()
	for _, e := range c.Client.SessionEvent.Query().Where(sessionevent.SessionID(id)).Order(sessionevent.ByAt(), sessionevent.ByID()).AllX(c.System(t)) {
		from, to := lifecycle.Status(""), lifecycle.Status("")
		if e.FromStatus != nil {
			from = *e.FromStatus
		}
		if e.ToStatus != nil {
			to = *e.ToStatus
		}
		text += string(e.Result) + " " + string(from) + "→" + string(to) + " " + e.Code + ": " + e.Message + "\n"
	}
	return text
}

// Environment returns the part of a session's input that sets environment variables, from pairs of
// name and value.
func Environment(pairs ...string) managertest.Vars {
	e := managertest.Vars{}
	for i := 0; i < len(pairs); i += 2 {
		e[pairs[i]] = pairs[i+1]
	}
	return managertest.Vars{"environment": e}
}
