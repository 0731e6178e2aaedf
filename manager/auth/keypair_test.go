package auth_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func TestKeypairs(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	as := w.As(t, w.A.Member)
	p, first := m.program(t, w, "one")
	_, second := m.program(t, w, "two")
	if !regexp.MustCompile(`^BK[A-Z2-7]{18}$`).MatchString(p.key) || !regexp.MustCompile(`^bks_[0-9A-Za-z]{43}$`).MatchString(p.secret) {
		t.Errorf("keypair %s %s", p.key, p.secret)
	}
	if !first.Keypair.IsDefault || second.Keypair.IsDefault {
		t.Error("the first one is not the default")
	}
	_, err := m.DeleteKeypair(as, auth.DeleteKeypairInput{ID: first.Keypair.ID})
	code(t, err, problem.CodeFailedPrecondition)
	yes, name := true, "renamed"
	changed, err := m.UpdateKeypair(as, auth.UpdateKeypairInput{ID: second.Keypair.ID, MakeDefault: &yes, Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	if !changed.Keypair.IsDefault || changed.Keypair.Name != name || changed.Secret != nil {
		t.Errorf("changed to %v", changed)
	}
	for _, k := range []uuid.UUID{first.Keypair.ID, second.Keypair.ID} { // the last one can be deleted although it is the default
		if _, err := m.DeleteKeypair(as, auth.DeleteKeypairInput{ID: k}); err != nil {
			t.Error(err)
		}
	}
	for i := range 20 {
		m.program(t, w, fmt.Sprint("number", i))
	}
	_, err = m.CreateKeypair(as, auth.CreateKeypairInput{Name: "more"})
	code(t, err, problem.CodeResourceExhausted)
}

func TestKeypairsOfOthers(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	_, made := m.program(t, w, "one")
	id, no, rate := made.Keypair.ID, false, 5
	for _, c := range []struct {
		name                   string
		as                     *ent.User
		update, rotate, remove string
	}{
		{"fellow member", w.A.Lead, problem.CodeNotFound, problem.CodeNotFound, problem.CodeNotFound},
		{"stranger", w.B.Member, problem.CodeNotFound, problem.CodeNotFound, problem.CodeNotFound},
		{"monitor", w.Monitor, problem.CodePermissionDenied, problem.CodePermissionDenied, problem.CodePermissionDenied},
		{"superadmin", w.Superadmin, "", problem.CodePermissionDenied, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := w.As(t, c.as)
			_, err := m.UpdateKeypair(ctx, auth.UpdateKeypairInput{ID: id, Active: &no})
			code(t, err, c.update)
			_, err = m.RotateKeypair(ctx, auth.RotateKeypairInput{ID: id})
			code(t, err, c.rotate)
			_, err = m.DeleteKeypair(ctx, auth.DeleteKeypairInput{ID: id})
			code(t, err, c.remove)
		})
	}
	_, err := m.CreateKeypair(w.As(t, w.A.Member), auth.CreateKeypairInput{Name: "fast", RateLimit: &rate})
	code(t, err, problem.CodePermissionDenied)
	_, err = m.CreateKeypair(viewer.With(t.Context(), viewer.Anonymous()), auth.CreateKeypairInput{Name: "x"})
	code(t, err, problem.CodeUnauthenticated)
}

// A credential that a token, or a user who acts as another one, creates must not have more
// permissions than its creator.
func TestCredentialsDoNotGrow(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	for name, change := range map[string]func(*viewer.Viewer){
		"read token":    func(v *viewer.Viewer) { v.Scopes = []access.TokenScope{access.TokenRead} },
		"account token": func(v *viewer.Viewer) { v.Scopes = []access.TokenScope{access.TokenRead, access.TokenAccount} },
		"project token": func(v *viewer.Viewer) { v.Scopes, v.Within = access.TokenScopes(), w.A.Project.ID },
		"acting":        func(v *viewer.Viewer) { v.Actor = w.Superadmin.ID },
	} {
		t.Run(name, func(t *testing.T) {
			v := w.Viewer(t, w.A.Member)
			change(v)
			ctx := viewer.With(t.Context(), v)
			_, err := m.CreateKeypair(ctx, auth.CreateKeypairInput{Name: "k"})
			code(t, err, problem.CodePermissionDenied)
			_, err = m.CreateSSHKey(ctx, auth.CreateSSHKeyInput{Name: "k"})
			code(t, err, problem.CodePermissionDenied)
			if name == "project token" {
				made, err := m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "t"})
				if err != nil || made.AccessToken.ProjectID == nil || *made.AccessToken.ProjectID != w.A.Project.ID {
					t.Errorf("token %v, %v", made, err)
				}
				return
			}
			_, err = m.CreateAccessToken(ctx, auth.CreateAccessTokenInput{Name: "t", Scopes: access.TokenScopes()})
			code(t, err, problem.CodePermissionDenied)
		})
	}
	v := w.Viewer(t, w.A.Member)
	v.Scopes = []access.TokenScope{access.TokenRead, access.TokenAccount}
	made, err := m.CreateAccessToken(viewer.With(t.Context(), v), auth.CreateAccessTokenInput{Name: "t"})
	if err != nil || strings.Join(made.AccessToken.Scopes, " ") != "read account" {
		t.Errorf("a token of a token: %v, %v", made, err)
	}
	_, err = m.CreateAccessToken(w.As(t, w.A.Member), auth.CreateAccessTokenInput{Name: "t", Project: &w.B.Project.ID})
	code(t, err, problem.CodeNotFound)
	_, err = m.CreateAccessToken(w.As(t, w.A.Member), auth.CreateAccessTokenInput{Name: "t", Scopes: []access.TokenScope{}})
	code(t, err, problem.CodeInvalidArgument)
}

func TestSecretsAreNotInTheDatabase(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	as := w.As(t, w.A.Member)
	p, _ := m.program(t, w, "one")
	token, err := m.CreateAccessToken(as, auth.CreateAccessTokenInput{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := m.CreateSSHKey(as, auth.CreateSSHKeyInput{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	private := strings.Split(*key.PrivateKey, "\n")[3]
	dump := ""
	for _, table := range []string{"keypairs", "access_tokens", "ssh_keys"} {
		rows, err := w.Client.QueryContext(t.Context(), "SELECT r::text FROM "+table+" r")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			dump += text + "\n"
		}
		rows.Close()
	}
	if !strings.Contains(dump, p.key) || !strings.Contains(dump, key.SSHKey.Fingerprint) {
		t.Fatalf("not a dump: %s", dump)
	}
	for _, secret := range []string{p.secret, *token.Secret, private} {
		if strings.Contains(dump, secret) || strings.Contains(dump, fmt.Sprintf("%x", secret)) {
			t.Errorf("%s is in the database", secret)
		}
	}
}
