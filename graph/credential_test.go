package graph_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/manager/managertest"
)

// token creates a token with the fields of its input, and returns the answer to a request with it.
func token(t *testing.T, m *managertest.Manager, u *ent.User, input managertest.Vars) *managertest.Client {
	t.Helper()
	input["name"] = "token"
	var out struct{ CreateAccessToken struct{ Secret string } }
	m.As(t, u).Must(t, `mutation ($in: CreateAccessTokenInput!) { createAccessToken(input: $in) { secret accessToken { scopes project { id } } } }`,
		managertest.Vars{"in": input}, &out)
	c := m.Anonymous()
	c.Header.Set("Authorization", "Bearer "+out.CreateAccessToken.Secret)
	return c
}

func TestTokensReachAsFarAsTheirScopes(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	s := seed(t, w)
	s.more(1)
	img := w.Client.Image.Query().FirstX(ctx)
	second := w.Client.Project.Create().SetName("second").SetDomain(w.A.Domain).SaveX(ctx)
	w.Client.Membership.Create().SetUser(w.A.Member).SetProject(second).ExecX(ctx)
	for _, p := range []*ent.Project{w.A.Project, second} {
		w.Client.Session.Create().SetName("in-" + p.Name).SetType("batch").SetDomainID(w.A.ID).SetProject(p).SetOwner(w.A.Member).
			SetResourceGroup(w.Group).SetImage(img).SetSlots(nil).ExecX(ctx)
	}

	t.Run("read", func(t *testing.T) {
		c := token(t, m, w.A.Member, managertest.Vars{"scopes": []string{"READ"}})
		c.Must(t, `{ viewer { user { id } } sessions { totalCount } }`, nil, nil)
		for query, scope := range map[string]string{
			`mutation { createKeypair(input: {name: "x"}) { secret } }`:                                 "account",
			`mutation { createAccessToken(input: {name: "x"}) { secret } }`:                             "account",
			`mutation { terminateSession(input: {id: "` + uuid.NewString() + `"}) { session { id } } }`: "sessions",
		} {
			errs := c.Ask(t, query, nil, nil)
			if errs.Code() != problem.CodePermissionDenied || !strings.Contains(errs.String(), scope) {
				t.Errorf("%s: %s, want the scope %s", query, errs, scope)
			}
		}
	})
	t.Run("admin without the admin scope", func(t *testing.T) {
		var all, few struct{ Sessions struct{ TotalCount int } }
		const query = `{ sessions { totalCount } }`
		token(t, m, w.Superadmin, managertest.Vars{}).Must(t, query, nil, &all)
		token(t, m, w.Superadmin, managertest.Vars{"scopes": []string{"READ", "SESSIONS"}}).Must(t, query, nil, &few)
		if own := 1; few.Sessions.TotalCount != own || all.Sessions.TotalCount <= own {
			t.Errorf("sees %d and %d sessions", few.Sessions.TotalCount, all.Sessions.TotalCount)
		}
	})
	t.Run("project", func(t *testing.T) {
		var out struct {
			Sessions struct {
				Edges []struct{ Node struct{ Name string } }
			}
		}
		c := token(t, m, w.A.Member, managertest.Vars{"project": second.ID})
		c.Must(t, `{ sessions { edges { node { name } } } }`, nil, &out)
		if e := out.Sessions.Edges; len(e) != 1 || e[0].Node.Name != "in-second" {
			t.Errorf("sees %v", e)
		}
	})
}

func TestKeypairOverGraphQL(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	member := m.As(t, w.A.Member)
	var made struct {
		CreateKeypair struct {
			Secret  string
			Keypair struct{ ID, AccessKey string }
		}
		CreateSSHKey struct{ PrivateKey string } `json:"createSshKey"`
	}
	member.Must(t, `mutation { createKeypair(input: {name: "ci"}) { secret keypair { id accessKey isDefault rateLimit user { email } } }
		createSshKey(input: {name: "laptop"}) { privateKey sshKey { id fingerprint publicKey } } }`, nil, &made)
	if !strings.Contains(made.CreateSSHKey.PrivateKey, "OPENSSH PRIVATE KEY") {
		t.Error("no private key")
	}
	const query = `{"query":"{ viewer { user { email } } sshKeys { edges { node { name } } } keypairs { totalCount } }"}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL+"/graphql", strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	if err := signature.Sign(r, made.CreateKeypair.Keypair.AccessKey, made.CreateKeypair.Secret, []byte(query), time.Now()); err != nil {
		t.Fatal(err)
	}
	signed := m.Anonymous()
	signed.Header = r.Header
	status, body := signed.Post(t, "/graphql", "application/json", []byte(query))
	if status != http.StatusOK || !strings.Contains(string(body), w.A.Member.Email) || !strings.Contains(string(body), `"totalCount":1`) {
		t.Errorf("%d %s", status, body)
	}
	for name, c := range map[string]struct {
		as   *ent.User
		want int
	}{"superadmin": {w.Superadmin, 1}, "colleague": {w.A.Lead, 0}} {
		var list struct{ Keypairs struct{ TotalCount int } }
		m.As(t, c.as).Must(t, `query ($u: ID!) { keypairs(user: $u) { totalCount } }`, managertest.Vars{"u": w.A.Member.ID}, &list)
		if list.Keypairs.TotalCount != c.want {
			t.Errorf("%s sees %d keypairs", name, list.Keypairs.TotalCount)
		}
	}
	if errs := m.As(t, w.A.Lead).Ask(t, `mutation ($id: ID!) { deleteKeypair(input: {id: $id}) { id } }`, managertest.Vars{"id": made.CreateKeypair.Keypair.ID}, nil); errs.Code() != problem.CodeNotFound {
		t.Errorf("a colleague deletes it: %s", errs)
	}
}
