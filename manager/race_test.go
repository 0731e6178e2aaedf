package manager_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/managertest"
)

// However many superadmins demote or deactivate each other, or each other's domains, at the same
// time, one superadmin stays.
func TestOneSuperadminStays(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	alive := func() int {
		return w.Client.User.Query().Where(user.RoleEQ(user.RoleSuperadmin), user.StatusEQ(user.StatusActive),
			user.HasDomainWith(domain.Active(true))).CountX(ctx)
	}
	var people []*ent.User
	for i := range 6 {
		name := fmt.Sprint("super", i)
		d := []uuid.UUID{w.A.ID, w.B.ID}[i%2]
		people = append(people, w.Client.User.Create().SetEmail(name+"@example.org").SetUsername(name).
			SetPasswordHash(w.Superadmin.PasswordHash).SetRole(user.RoleSuperadmin).SetDomainID(d).SaveX(ctx))
	}
	w.Client.User.UpdateOne(w.Superadmin).SetRole(user.RoleMonitor).ExecX(ctx)
	var clients []*managertest.Client
	for _, p := range people {
		clients = append(clients, m.As(t, p))
	}
	changes := []string{`role: USER`, `status: INACTIVE`, `role: ADMIN`, `status: DELETED`}
	var all sync.WaitGroup
	for i, as := range clients {
		for j := range people {
			all.Go(func() {
				_ = as.Ask(t, fmt.Sprintf(`mutation { updateUser(input: {id: %q, %s}) { user { id } } }`, people[(i+j)%6].ID, changes[(i+j)%4]), nil, nil)
			})
		}
		all.Go(func() {
			d := []uuid.UUID{w.B.ID, w.A.ID}[i%2]
			_ = as.Ask(t, fmt.Sprintf(`mutation { updateDomain(input: {id: %q, active: false}) { domain { id } } }`, d), nil, nil)
		})
	}
	all.Wait()
	if n := alive(); n != 1 {
		t.Fatalf("%d superadmins are left, want 1", n)
	}
	// The last one cannot remove themselves either.
	last := w.Client.User.Query().Where(user.RoleEQ(user.RoleSuperadmin), user.StatusEQ(user.StatusActive),
		user.HasDomainWith(domain.Active(true))).OnlyX(ctx)
	as := m.As(t, last)
	for _, change := range changes {
		if errs := as.Ask(t, fmt.Sprintf(`mutation { updateUser(input: {id: %q, %s}) { user { id } } }`, last.ID, change), nil, nil); len(errs) == 0 {
			t.Errorf("the last superadmin: %s", change)
		}
	}
	if errs := as.Ask(t, fmt.Sprintf(`mutation { updateDomain(input: {id: %q, active: false}) { domain { id } } }`, last.DomainID), nil, nil); len(errs) == 0 {
		t.Error("the domain of the last superadmin is closed")
	}
	if n := alive(); n != 1 {
		t.Errorf("%d superadmins are left, want 1", n)
	}
}

// A request that began while its user was in the project cannot create a session after they have
// left: it is created before, or not at all.
func TestSessionInAProjectOneHasLeft(t *testing.T) {
	c := newCluster(t, 0)
	ctx := c.System(t)
	leave, err := c.Client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leave.Rollback() }()
	leave.Membership.Delete().Where(membership.UserID(c.A.Member.ID), membership.ProjectID(c.A.Project.ID)).ExecX(ctx)
	done := make(chan managertest.Errors, 1)
	go func() { // the requests come before the leaving is committed
		_, errs := tryCreate(t, c.as, input(managertest.Vars{"project": c.A.Project.ID}, "sleep", "600"))
		done <- errs
	}()
	waits := func() bool {
		rows, err := c.Client.QueryContext(ctx, "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		return rows.Next()
	}
	var errs managertest.Errors
	answered := false
	managertest.Eventually(t, "the request waits for the one that leaves", func() bool {
		select {
		case errs = <-done:
			answered = true
			return true
		default:
			return waits()
		}
	})
	if err := leave.Commit(); err != nil {
		t.Fatal(err)
	}
	if !answered {
		errs = <-done
	}
	if errs.Code() != "NOT_FOUND" {
		t.Errorf("%q, want NOT_FOUND: %s", errs.Code(), errs)
	}
	if _, errs := tryCreate(t, c.as, input(managertest.Vars{"project": c.A.Project.ID}, "sleep", "600")); errs.Code() != "NOT_FOUND" {
		t.Errorf("after he left: %s", errs)
	}
	if n := c.Client.Session.Query().Where(session.OwnerID(c.A.Member.ID)).CountX(ctx); n > 0 {
		t.Errorf("%d sessions are there", n)
	}
}

// Many concurrent requests create and end fractions that exceed the limit only together: at no time
// is more allocated than the policy allows.
func TestFractionsUnderALimit(t *testing.T) {
	c := newCluster(t, 1)
	ctx := c.System(t)
	const most = 400 // thousandths
	pol := c.Client.ResourcePolicy.Create().SetName("two fifths").SetTotalSlots(resource.Slots{"cpu": most}).SaveX(ctx)
	c.Client.PolicyAttachment.Create().SetPolicy(pol).SetUser(c.A.Member).ExecX(ctx)
	held := func() (sum int64) {
		for _, a := range c.Client.Allocation.Query().AllX(ctx) {
			if a.FreedAt == nil && a.Slot == "cpu" {
				sum += a.Amount
			}
		}
		return sum
	}
	stop := make(chan struct{})
	var watcher, all sync.WaitGroup
	watcher.Go(func() {
		for {
			if n := held(); n > most {
				t.Errorf("%d thousandths are held, at most %d", n, most)
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	for i := range 8 {
		all.Go(func() {
			for j := range 4 {
				amount := []string{"0.1", "0.133", "0.034", "0.4", "0.067", "0.25"}[(i*5+j)%6]
				id, errs := tryCreate(t, c.as, input(managertest.Vars{"slots": managertest.Vars{"cpu": amount, "mem": "16m"}}, "sleep", "600"))
				if len(errs) > 0 {
					t.Error(errs)
					return
				}
				if j < 3 {
					managertest.Eventually(t, "it is decided on", func() bool {
						s := c.session(t, id)
						return s.Status != lifecycle.Pending || s.Pending != nil
					})
					c.end(t, id, true)
				}
			}
		})
	}
	all.Wait()
	managertest.Eventually(t, "what fits of the rest is held", func() bool { return held() >= most/2 })
	close(stop)
	watcher.Wait()
	c.check(t, false)
}

func signUp(t *testing.T, m *managertest.Manager, form managertest.Vars) (*http.Response, string) {
	t.Helper()
	body, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, nil, m.Anonymous(), "POST", "/auth/signup", string(body), "Content-Type", "application/json")
}

// An invitation creates one user with the invited address, once and before it expires.
func TestInvitationIsForOne(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	root := m.As(t, w.Superadmin)
	if resp, body := signUp(t, m, managertest.Vars{"email": "new@example.org", "password": identitytest.Password, "domain": "a"}); resp.StatusCode != http.StatusNotFound {
		t.Errorf("where sign-up is off: %d %s", resp.StatusCode, body)
	}
	root.Must(t, `mutation($d: ID!) { updateDomain(input: {id: $d, signUp: INVITATION}) { domain { id } } }`, managertest.Vars{"d": w.A.ID}, nil)
	invite := func(email string) string {
		var out struct{ CreateInvitation struct{ Secret string } }
		root.Must(t, `mutation($e: String!, $d: ID!) { createInvitation(input: {email: $e, domain: $d, expiresInHours: 1}) { secret } }`,
			managertest.Vars{"e": email, "d": w.A.ID}, &out)
		return out.CreateInvitation.Secret
	}
	people := func() int { return w.Client.User.Query().CountX(ctx) }
	before := people()
	secret := invite("new@example.org")
	form := func(email string) managertest.Vars {
		return managertest.Vars{"email": email, "password": identitytest.Password, "invitation": secret}
	}
	for name, one := range map[string]managertest.Vars{
		"by a third party":   form("third@example.org"),
		"with a role":        {"email": "new@example.org", "password": identitytest.Password, "invitation": secret, "role": "SUPERADMIN"},
		"with a status":      {"email": "new@example.org", "password": identitytest.Password, "invitation": secret, "status": "ACTIVE"},
		"with another one's": {"email": "new@example.org", "password": identitytest.Password, "invitation": secret[1:] + "x"},
		"without any":        {"email": "new@example.org", "password": identitytest.Password, "domain": "a"},
	} {
		if resp, body := signUp(t, m, one); resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	if n := people(); n != before {
		t.Fatalf("%d people more", n-before)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for i := range 8 {
		all.Go(func() {
			f := form("new@example.org")
			f["username"] = fmt.Sprint("new", i)
			resp, _ := signUp(t, m, f)
			mu.Lock()
			answers[resp.StatusCode]++
			mu.Unlock()
		})
	}
	all.Wait()
	if n := people(); n != before+1 || answers[http.StatusCreated] != 1 {
		t.Errorf("eight at once make %d people, answered %v", n-before, answers)
	}
	made := w.Client.User.Query().Where(user.Email("new@example.org")).OnlyX(ctx)
	if made.Role != user.RoleUser || made.DomainID != w.A.ID || made.Status != user.StatusActive {
		t.Errorf("made %v", made)
	}

	secret = "an invitation of yesterday"
	sum := sha256.Sum256([]byte(secret))
	w.Client.Invitation.Create().SetEmail("late@example.org").SetHash(sum[:]).SetDomainID(w.A.ID).SetExpiresAt(time.Now().Add(-time.Second)).ExecX(ctx)
	if resp, body := signUp(t, m, form("late@example.org")); resp.StatusCode < 400 || resp.StatusCode >= 500 || strings.Contains(body, "late@") {
		t.Errorf("an expired one: %d %s", resp.StatusCode, body)
	}
	if n := people(); n != before+1 {
		t.Errorf("%d people more", n-before)
	}
}
