package cluster

import (
	"bytes"
	"context"
	"crypto/rand"

	"github.com/berthhq/berth/client"
)

// Small is what most scenarios need; they run on small machines.
func Small() client.Slots { return Slots("cpu", "0.1", "mem", "64m") }

// Slots takes names and amounts in turn.
func Slots(pairs ...string) client.Slots {
	s := client.Slots{}
	for i := 0; i < len(pairs); i += 2 {
		s[pairs[i]] = pairs[i+1]
	}
	return s
}

// Batch is a small session that runs a shell script on the minimal image.
func Batch(script string) client.CreateSessionInput {
	in := Interactive()
	in.Command = []string{"sh", "-c", script}
	return in
}

// Interactive is a small session on the minimal image that stays.
func Interactive() client.CreateSessionInput {
	return client.CreateSessionInput{Image: "minimal:1", Slots: Small(), IdempotencyKey: rand.Text()}
}

// Run makes a session that must be accepted.
func (u *User) Run(in client.CreateSessionInput) *client.Session {
	u.t.Helper()
	s, err := u.CreateSession(u.t.Context(), in)
	if err != nil {
		u.t.Fatalf("create session: %v", err)
	}
	return s
}

// Until waits for a state of the session, over the subscription. It fails at
// once when the session has ended in another one.
func (u *User) Until(id, status string) client.SessionState {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), Timeout)
	defer cancel()
	var last client.SessionState
	err := u.WatchSession(ctx, id, nil, func(s client.SessionState) bool {
		last = s
		return s.Status != status && !s.Ended()
	})
	if err != nil || last.Status != status {
		u.t.Fatalf("session %s is %s (%s), want %s: %v", last.Name, last.Status, last.StatusMessage, status, err)
	}
	return last
}

// End ends a session at once and waits for that.
func (u *User) End(id string) {
	u.t.Helper()
	if _, err := u.TerminateSession(u.t.Context(), id, true); err != nil {
		u.t.Fatalf("terminate session: %v", err)
	}
	ctx, cancel := context.WithTimeout(u.t.Context(), Timeout)
	defer cancel()
	if err := u.WatchSession(ctx, id, nil, func(s client.SessionState) bool { return !s.Ended() }); err != nil {
		u.t.Fatalf("wait for the session's end: %v", err)
	}
}

// Show reads all of a session.
func (u *User) Show(id string) *client.SessionDetail {
	u.t.Helper()
	s, err := u.Session(u.t.Context(), id)
	if err != nil {
		u.t.Fatalf("read session: %v", err)
	}
	return s
}

// Exec runs a shell command in the main kernel of a session.
func (u *User) Exec(session, script string) (string, int) {
	u.t.Helper()
	return u.ExecIn(session, "", script)
}

// ExecIn runs a shell command in a kernel of a session, by its id.
func (u *User) ExecIn(session, kernel, script string) (string, int) {
	u.t.Helper()
	out, code, err := u.exec(session, kernel, script)
	if err != nil {
		u.t.Fatalf("exec %q: %v", script, err)
	}
	return out, code
}

// Try runs nothing in a kernel, where it can be reached.
func (u *User) Try(session, kernel string) error {
	_, _, err := u.exec(session, kernel, "true")
	return err
}

func (u *User) exec(session, kernel, script string) (string, int, error) {
	ctx, cancel := context.WithTimeout(u.t.Context(), Timeout)
	defer cancel()
	term, err := u.OpenTerminal(ctx, client.TerminalOptions{Session: session, Kernel: kernel, Command: []string{"sh", "-c", script}})
	if err != nil {
		return "", 0, err
	}
	defer term.Close()
	var out bytes.Buffer
	code, err := term.Output(ctx, &out, &out)
	return out.String(), code, err
}
