package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/ent"
	entagent "github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/user"
	nodes "github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// Users cannot give themselves permissions through fields that only others can set.
func TestNobodyGivesHimselfMore(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	ctx := w.System(t)
	policy := w.Client.ResourcePolicy.Create().SetName("generous").SaveX(ctx)
	rank := func(u *ent.User) string {
		u = w.Client.User.Query().Where(user.ID(u.ID)).WithMemberships().WithPolicies().OnlyX(ctx)
		admin := ""
		for _, one := range u.Edges.Memberships {
			admin += fmt.Sprint(one.ProjectID, one.Admin)
		}
		return fmt.Sprint(u.Role, u.Status, u.DomainID, u.Email, u.ContainerUID, u.ContainerGids, u.PasswordChangeRequired, admin, len(u.Edges.Policies))
	}
	for _, who := range []*ent.User{w.A.Member, w.A.Lead, w.A.Admin, w.Monitor} {
		before := rank(who)
		as := m.As(t, who)
		vars := managertest.Vars{"me": who.ID, "p": policy.ID, "b": w.B.ID, "pb": w.B.Project.ID}
		mutations := []string{
			`mutation($me: ID!) { updateUser(input: {id: $me, role: SUPERADMIN}) { user { id } } }`,
			`mutation($me: ID!, $b: ID!) { updateUser(input: {id: $me, domain: $b}) { user { id } } }`,
			`mutation($me: ID!) { updateUser(input: {id: $me, email: "root@example.org"}) { user { id } } }`,
			`mutation { updateProfile(input: {fullName: "x", role: SUPERADMIN}) { user { id } } }`,
			`mutation($me: ID!) { updateProfile(input: {id: $me, containerUid: 0}) { user { id } } }`,
			`mutation($b: ID!) { createUser(input: {email: "x@example.org", password: "a fine password", domain: $b}) { user { id } } }`,
			`mutation($b: ID!) { createUser(input: {email: "x@example.org", password: "a fine password", domain: $b, role: SUPERADMIN}) { user { id } } }`,
			`mutation($b: ID!) { importUsers(input: {domain: $b, csv: "email,role\nx@example.org,superadmin\n", passwords: GENERATED}) { created } }`,
			`mutation($me: ID!, $pb: ID!) { addMembership(input: {project: $pb, user: $me, admin: true}) { project { id } } }`,
			`mutation { createKeypair(input: {name: "fast", rateLimit: 1000000}) { keypair { id } } }`,
			`mutation($me: ID!) { createAccessToken(input: {name: "of another", user: $me}) { secret } }`,
			`mutation { createSession(input: {image: "a:1", slots: {}, owner: "x"}) { session { id } } }`,
			`mutation($me: ID!) { grantRole(input: {role: $me, user: $me, scope: SYSTEM}) { grant { id } } }`,
		}
		if who != w.A.Admin { // they administer themselves within their domain, whose limits apply to them
			mutations = append(mutations,
				`mutation($me: ID!, $p: ID!) { attachResourcePolicy(input: {user: $me, policy: $p, domain: null}) { policy { id } } }`,
				`mutation($me: ID!) { updateUser(input: {id: $me, role: ADMIN}) { user { id } } }`,
				`mutation($me: ID!, $p: ID!) { updateUser(input: {id: $me, policy: $p}) { user { id } } }`,
				`mutation($me: ID!) { updateUser(input: {id: $me, containerUid: 0}) { user { id } } }`,
				`mutation($me: ID!) { updateUser(input: {id: $me, username: "root"}) { user { id } } }`,
				`mutation($me: ID!) { updateUser(input: {id: $me, clearPolicy: true}) { user { id } } }`,
			)
		}
		if who == w.A.Member {
			mutations = append(mutations, fmt.Sprintf(`mutation($me: ID!) { addMembership(input: {project: %q, user: $me, admin: true}) { project { id } } }`, w.A.Project.ID))
		}
		for _, q := range mutations {
			used := managertest.Vars{}
			for name, v := range vars {
				if strings.Contains(q, "$"+name+":") {
					used[name] = v
				}
			}
			switch errs := as.Ask(t, q, used, nil); errs.Code() {
			case problem.CodePermissionDenied, problem.CodeNotFound, problem.CodeInvalidArgument:
			default:
				t.Errorf("%s: %q for %s", who.Email, errs, q)
			}
		}
		if after := rank(who); after != before {
			t.Errorf("%s: %s", who.Email, cmp.Diff(before, after))
		}
	}
	if n := w.Client.User.Query().Where(user.Email("x@example.org")).CountX(ctx); n > 0 {
		t.Error("a user was created")
	}
}

// Only the owner can reach the terminal, ports and log of a session: for others it does not exist,
// and an ended session cannot be entered.
func TestDoorsOfSessions(t *testing.T) {
	c := clustertest.New(t, 1)
	ctx := c.System(t)
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	lead := c.Manager.As(t, c.A.Lead)
	anothers, errs := clustertest.TryCreate(t, lead, clustertest.SessionInput(nil, "sleep", "600"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	c.WaitFor(t, anothers, lifecycle.Running)
	foreign := c.Client.Session.GetX(ctx, anothers).QueryKernels().OnlyIDX(ctx)
	member := c.Member
	var read, bound struct{ CreateAccessToken struct{ Secret string } }
	other := c.Client.Project.Create().SetName("other").SetDomainID(c.A.ID).SaveX(ctx)
	c.Client.Membership.Create().SetUser(c.A.Member).SetProject(other).ExecX(ctx)
	member.Must(t, `mutation { createAccessToken(input: {name: "reads", scopes: [READ]}) { secret } }`, nil, &read)
	member.Must(t, `mutation($p: ID!) { createAccessToken(input: {name: "elsewhere", project: $p}) { secret } }`, managertest.Vars{"p": other.ID}, &bound)
	bearer := func(secret string) *managertest.Client {
		b := c.Manager.Anonymous()
		b.Header.Set("Authorization", "Bearer "+secret)
		return b
	}
	doors := []string{"/terminal", "/ports/80", "/log"}
	try := func(who string, as *managertest.Client, session uuid.UUID, query string, want map[string][]int) {
		t.Helper()
		for _, door := range doors {
			resp, body := send(t, nil, as, "GET", "/sessions/"+session.String()+door+query, "")
			ok := false
			for _, status := range want[door] {
				ok = ok || resp.StatusCode == status
			}
			if !ok {
				t.Errorf("%s%s as %s: %d, want %v: %.200s", door, query, who, resp.StatusCode, want[door], body)
			}
		}
	}
	all := func(status ...int) map[string][]int {
		return map[string][]int{"/terminal": status, "/ports/80": status, "/log": status}
	}
	try("a stranger", c.Manager.As(t, c.B.Member), id, "", all(http.StatusNotFound))
	try("the admin of another domain", c.Manager.As(t, c.B.Admin), id, "", all(http.StatusNotFound))
	try("a colleague in no project", c.Manager.As(t, c.A.Loner), id, "", all(http.StatusNotFound))
	try("nobody", c.Manager.Anonymous(), id, "", all(http.StatusUnauthorized))
	try("a token for another project", bearer(bound.CreateAccessToken.Secret), id, "", all(http.StatusNotFound))
	try("the owner through the kernel of another", member, id, "?kernel="+foreign.String(), all(http.StatusNotFound))
	enter := func(log int) map[string][]int {
		return map[string][]int{"/terminal": {http.StatusForbidden}, "/ports/80": {http.StatusForbidden}, "/log": {log}}
	}
	try("a monitor", c.Manager.As(t, c.Monitor), id, "", enter(http.StatusOK))
	try("a token that only reads", bearer(read.CreateAccessToken.Secret), id, "", enter(http.StatusOK))
	// The owner passes the check; the request ends there because it is not a WebSocket.
	try("the owner", member, id, "", map[string][]int{"/terminal": {http.StatusUpgradeRequired}, "/ports/80": {http.StatusUpgradeRequired}, "/log": {http.StatusOK}})
	c.Terminate(t, id, true)
	c.WaitForEnd(t, id)
	try("the owner, after its end", member, id, "", map[string][]int{"/terminal": {http.StatusConflict}, "/ports/80": {http.StatusConflict}, "/log": {http.StatusOK, http.StatusNotFound}})
	try("another user, after its end", c.Manager.As(t, c.B.Member), id, "", all(http.StatusNotFound))
}

// The credentials of people and containers do not work for machines: no access token and no ticket
// can join as an agent, and a join token cannot be used twice.
func TestPeopleDoNotJoinAsAgents(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	var made struct{ CreateAccessToken struct{ Secret string } }
	c.Manager.As(t, c.Superadmin).Must(t, `mutation { createAccessToken(input: {name: "of root"}) { secret } }`, nil, &made)
	folderID, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var up struct {
		CreateUpload struct{ Uploads []struct{ Ticket string } }
	}
	c.Member.Must(t, `mutation($id: ID!) { createUpload(input: {vfolder: $id, files: [{path: "f", size: 1}]}) { uploads { ticket } } }`, managertest.Vars{"id": folderID}, &up)
	storage, err := c.Manager.NewJoinToken(t.Context(), "storage")
	if err != nil {
		t.Fatal(err)
	}
	cookie := c.Member.Header.Get("Cookie")
	_, secret, _ := strings.Cut(cookie, "=")
	for name, token := range map[string]string{
		"a superadmin's token": made.CreateAccessToken.Secret, "a cookie": secret, "a ticket": up.CreateUpload.Uploads[0].Ticket,
		"a token for storage": storage, "the token that storage used": d.Config.JoinToken, "an id": c.Superadmin.ID.String(),
	} {
		n, err := nodes.NewNode(nodes.NodeConfig{Role: nodes.RoleAgent, Name: "forged", Dir: t.TempDir(),
			Managers: []string{c.Manager.ClusterAddress()}, JoinToken: token, CAFingerprint: c.Manager.Fingerprint()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
		if err := n.Serve(ctx, grpc.NewServer()); !errdefs.IsPermissionDenied(err) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if c.Client.Agent.Query().Where(entagent.Name("forged")).ExistX(c.System(t)) {
		t.Error("an agent is there")
	}
	// The routes for users do not include those for machines.
	for _, path := range []string{"/berth.agent.v1.Agent/CreateKernel", "/berth.cluster.v1.Cluster/Join", "/berth.storage.v1.Storage/DeleteFolder"} {
		resp, body := send(t, nil, c.Manager.As(t, c.Superadmin), "POST", path, "x", "Content-Type", "application/grpc")
		if resp.StatusCode < 400 && resp.Header.Get("Grpc-Status") != "" || strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc") {
			t.Errorf("%s: %d %.100s", path, resp.StatusCode, body)
		}
	}
}
