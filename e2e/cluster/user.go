package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// Timeout limits a wait of a scenario.
const Timeout = 5 * time.Minute

// User is a logged-in user with an access token.
type User struct {
	*client.Client
	Email, Password string
	Token           string
	ID, Project     string // ids

	p *Platform
	t testing.TB
}

// User creates a user with a project of their own.
func (p *Platform) User(t testing.TB) *User { return p.UserAs(t, "USER") }

// UserAs creates a user of a role, with a project of their own.
func (p *Platform) UserAs(t testing.TB, role client.Enum) *User {
	t.Helper()
	p.Watch(t)
	ctx := t.Context()
	domains, err := p.admin.Domains(ctx, "default")
	if err != nil || len(domains) != 1 {
		t.Fatalf("find the first domain: %v, %v", domains, err)
	}
	n := p.users.Add(1)
	project, err := p.admin.CreateProject(ctx, client.CreateProjectInput{Name: fmt.Sprintf("project-%d", n), Domain: domains[0].ID})
	if err != nil {
		t.Fatalf("create project: %v", err)
	}
	u := &User{p: p, t: t, Project: project.ID, Email: fmt.Sprintf("user%d@example.org", n), Password: fmt.Sprintf("secret of user %d", n)}
	made, err := p.admin.CreateUser(ctx, client.CreateUserInput{
		Email: u.Email, Password: u.Password, Role: role, Domain: domains[0].ID, Projects: []string{project.ID},
	})
	if err != nil {
		t.Fatalf("create user: %v", err)
	}
	u.ID = made.ID
	p.Secret("the password of "+u.Email, u.Password)
	if u.Client, u.Token, err = p.login(ctx, u.Email, u.Password); err != nil {
		t.Fatal(err)
	}
	return u
}

// Admin returns the first superadmin.
func (p *Platform) Admin(t testing.TB) *User {
	return &User{Client: p.admin, Email: p.Email, Password: p.Password, p: p, t: t}
}

// In returns the same user for a sub-test.
func (u *User) In(t testing.TB) *User {
	in := *u
	in.t = t
	return &in
}

// Browser returns a client that is logged in with the password and has a cookie.
func (u *User) Browser() *client.Client {
	u.t.Helper()
	c, err := client.New(u.p.URL, "", "berth-e2e")
	if err != nil {
		u.t.Fatal(err)
	}
	if _, err := c.Login(u.t.Context(), u.Email, u.Password); err != nil {
		u.t.Fatalf("log in as %s: %v", u.Email, err)
	}
	return c
}

// Query runs a GraphQL operation that must succeed.
func (u *User) Query(query string, vars map[string]any, out any) {
	u.t.Helper()
	resp, err := u.Raw(u.t.Context(), client.Request{Query: query, Variables: vars})
	if err == nil {
		err = resp.Err()
	}
	if err == nil {
		err = json.Unmarshal(resp.Data, out)
	}
	if err != nil {
		u.t.Fatalf("%.80s: %v", query, err)
	}
}

// Eventually waits for a condition.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	wait.Until(t, what, is)
}

// Walk runs a script of web/e2e in a real browser, as this user, with additional variables in its
// environment. Without a browser, the test is skipped.
func (u *User) Walk(script string, env ...string) {
	u.t.Helper()
	root, err := repository()
	if err != nil {
		u.t.Fatal(err)
	}
	web := filepath.Join(root, "web")
	node, err := exec.LookPath("node")
	if err != nil {
		u.t.Skip("no node on this machine")
	}
	for _, needed := range []string{"/usr/bin/chromium", filepath.Join(web, "node_modules/playwright-core")} {
		if _, err := os.Stat(needed); err != nil {
			u.t.Skipf("no browser: %v (run make setup web)", err)
		}
	}
	cmd := exec.CommandContext(u.t.Context(), node, "--import", "./e2e/typescript.mjs", "e2e/"+script+".ts")
	cmd.Dir = web
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(append(os.Environ(), "BERTH_URL="+u.p.URL, "BERTH_EMAIL="+u.Email, "BERTH_PASSWORD="+u.Password), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Errorf("walk: %v\n%s", err, out)
	}
	u.t.Logf("%s", out)
}

// Small are the slots of most scenarios, which run on small machines.
func Small() client.Slots { return Slots("cpu", "0.1", "mem", "64m") }

// Slots takes alternating names and amounts.
func Slots(pairs ...string) client.Slots {
	s := client.Slots{}
	for i := 0; i < len(pairs); i += 2 {
		s[pairs[i]] = pairs[i+1]
	}
	return s
}

// Batch returns the request of a small session that runs a shell script on the minimal image.
func Batch(script string) client.CreateSessionInput {
	in := Interactive()
	in.Command = []string{"sh", "-c", script}
	return in
}

// Interactive returns the request of a small interactive session on the minimal image.
func Interactive() client.CreateSessionInput {
	return client.CreateSessionInput{Image: "minimal:1", Slots: Small(), IdempotencyKey: rand.Text()}
}

// Run creates a session, which must be accepted.
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
func (u *User) Until(id string, status client.Enum) client.SessionState {
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

// End ends a session at once and waits for its end.
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

// Try runs an empty command in a kernel, if it can be reached.
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
