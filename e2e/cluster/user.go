package cluster

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// Timeout bounds a wait of a scenario.
const Timeout = 5 * time.Minute

// User is someone who is logged in, with an access token.
type User struct {
	*client.Client
	Email, Password string
	Token           string
	ID, Project     string // ids

	p *Platform
	t testing.TB
}

// User makes a user with a project of their own.
func (p *Platform) User(t testing.TB) *User { return p.UserAs(t, "user") }

// UserAs makes a user of a role, with a project of their own.
func (p *Platform) UserAs(t testing.TB, role string) *User {
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

// Admin is the first superadmin.
func (p *Platform) Admin(t testing.TB) *User {
	return &User{Client: p.admin, Email: p.Email, Password: p.Password, p: p, t: t}
}

// In is the same user in a test within the test.
func (u *User) In(t testing.TB) *User {
	in := *u
	in.t = t
	return &in
}

// Browser logs in with the password and keeps a cookie.
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
