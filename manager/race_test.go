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
	"github.com/berthhq/berth/ent/user"
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
