package auth_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func TestResetPassword(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	cookie := m.logIn(t, w.A.Member.Email)
	open := m.Watch(t.Context(), m.seen(t, cookie))
	all := w.Client.Role.Create().SetName("all").SetPermissions(access.Permissions{access.User: access.OperationsOn(access.User)}).SaveX(system)
	w.Client.RoleGrant.Create().SetRole(all).SetUser(w.A.Loner).SetScope("system").SetScopeID(uuid.Nil).ExecX(system)
	for _, c := range []struct {
		name   string
		as, of *ent.User
		code   string
	}{
		{"fellow", w.A.Lead, w.A.Member, problem.CodePermissionDenied},
		{"himself", w.A.Member, w.A.Member, problem.CodePermissionDenied},
		{"admin elsewhere", w.B.Admin, w.A.Member, problem.CodeNotFound},
		{"admin of a superadmin", w.A.Admin, w.Superadmin, problem.CodePermissionDenied},
		{"admin of a monitor", w.A.Admin, w.Monitor, problem.CodePermissionDenied},
		{"admin of a user with a role on the system", w.A.Admin, w.A.Loner, problem.CodePermissionDenied},
		{"monitor", w.Monitor, w.A.Member, problem.CodePermissionDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := m.ResetUserPassword(w.As(t, c.as), auth.ResetUserPasswordInput{User: c.of.ID})
			code(t, err, c.code)
		})
	}
	goesOn(t, "login", open)
	short := "short"
	_, err := m.ResetUserPassword(w.As(t, w.A.Admin), auth.ResetUserPasswordInput{User: w.A.Member.ID, Password: &short})
	code(t, err, problem.CodeInvalidArgument)
	out, err := m.ResetUserPassword(w.As(t, w.A.Admin), auth.ResetUserPasswordInput{User: w.A.Member.ID})
	if err != nil || out.Password == nil || len(*out.Password) != 20 {
		t.Fatalf("reset gives %v, %v", out, err)
	}
	ends(t, "login", open)
	resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password)
	status(t, resp, http.StatusUnauthorized)
	resp, body := m.tryLogin(t, w.A.Member.Email, *out.Password)
	status(t, resp, http.StatusOK)
	if !strings.Contains(body, `"due":"password"`) {
		t.Errorf("login answers %s", body)
	}
	c := resp.Cookies()[0]
	cookie = c.Name + "=" + c.Value
	ctx := viewer.With(t.Context(), m.seen(t, cookie))
	err = m.ChangePassword(ctx, auth.ChangePasswordInput{Current: *out.Password, New: "four other words"})
	code(t, err, "")
	if v := m.seen(t, cookie); v.Due != "" || len(v.Projects) != 1 {
		t.Errorf("still %v", v)
	}
	given := "given by the admin"
	out, err = m.ResetUserPassword(w.As(t, w.Superadmin), auth.ResetUserPasswordInput{User: w.A.Member.ID, Password: &given})
	if err != nil || out.Password != nil {
		t.Errorf("reset gives %v, %v", out, err)
	}
}

func TestRulesOfTheDomain(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	system := viewer.SystemContext(t.Context())
	w.Client.Domain.UpdateOneID(w.A.ID).SetPasswordMinLength(14).SetPasswordMaxAgeDays(30).ExecX(system)
	ctx := w.As(t, w.A.Member)
	for _, p := range []string{"thirteen char", "Member-A@example.org", "passwordpassword"} {
		err := m.ChangePassword(ctx, auth.ChangePasswordInput{Current: identitytest.Password, New: p})
		code(t, err, problem.CodeInvalidArgument)
	}
	err := m.ChangePassword(ctx, auth.ChangePasswordInput{Current: identitytest.Password, New: "fourteen chars"})
	code(t, err, "")
	w.Client.Domain.UpdateOneID(w.A.ID).SetPasswordMinLength(40).ExecX(system)
	made, err := m.ResetUserPassword(w.As(t, w.A.Admin), auth.ResetUserPasswordInput{User: w.A.Loner.ID})
	if err != nil || len(*made.Password) != 40 {
		t.Errorf("with 40 required characters, got %v, %v", made, err)
	}
	due := func() bool {
		_, body := m.tryLogin(t, w.A.Member.Email, "fourteen chars")
		return strings.Contains(body, `"due":"password"`)
	}
	if due() {
		t.Error("a new password is due")
	}
	w.Client.User.UpdateOneID(w.A.Member.ID).SetPasswordChangedAt(time.Now().AddDate(0, 0, -31)).ExecX(system)
	if !due() {
		t.Error("an old password is not due")
	}
}
