package graph_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/lifecycle"
)

// act performs one operation on the object with the given ID.
type act func(x *table, c *column, f *fixture, id uuid.UUID) string

// change returns the act that sends a mutation.
func change(mutation string, input func(c *column, f *fixture, id uuid.UUID) vars) act {
	return func(x *table, c *column, f *fixture, id uuid.UUID) string {
		query := fmt.Sprintf("mutation($input: %s!) { %s(input: $input) { __typename } }", inputOf(mutation), mutation)
		return verdictOf(c.as.Ask(x.t, query, vars{"input": input(c, f, id)}, nil).Code())
	}
}

// made returns the act that creates another object with a mutation, with the input of the access
// matrix.
func made(mutation string) act {
	return change(mutation, func(_ *column, f *fixture, _ uuid.UUID) vars { f.n += 1_000_000; return matrix[mutation](f) })
}

func renamed(_ *column, f *fixture, id uuid.UUID) vars { return vars{"id": id, "name": f.name() + "z"} }

func described(_ *column, f *fixture, id uuid.UUID) vars {
	return vars{"id": id, "description": f.name()}
}

func only(_ *column, _ *fixture, id uuid.UUID) vars { return vars{"id": id} }

// handled has, for every type with permissions, a function that creates an object in a scope, and
// the act for each operation. Operations without an act are never in permissions.
var handled = map[string]struct {
	make func(f *fixture) uuid.UUID
	acts map[access.Operation]act
}{
	"Domain": {func(f *fixture) uuid.UUID { return f.domain.ID }, map[access.Operation]act{
		access.Create: made("createDomain"), access.Update: change("updateDomain", described),
		access.Delete: change("deleteDomain", func(_ *column, f *fixture, id uuid.UUID) vars { return vars{"id": id, "name": f.domain.Name} }),
	}},
	"Project": {func(f *fixture) uuid.UUID { return f.project.ID }, map[access.Operation]act{
		access.Create: made("createProject"), access.Update: change("updateProject", described),
		access.Delete: change("deleteProject", func(_ *column, f *fixture, id uuid.UUID) vars { return vars{"id": id, "name": f.project.Name} }),
		access.ManageMembers: change("addMembership", func(c *column, f *fixture, id uuid.UUID) vars {
			return vars{"project": id, "user": f.member().ID}
		}),
	}},
	"User": {func(f *fixture) uuid.UUID {
		if f.scope == "own" {
			return f.owner.ID
		}
		return f.member().ID
	}, map[access.Operation]act{
		access.Create: made("createUser"),
		access.Update: change("updateUser", func(_ *column, f *fixture, id uuid.UUID) vars { return vars{"id": id, "fullName": f.name()} }),
		access.Delete: change("deleteUser", only),
		access.Impersonate: func(x *table, c *column, f *fixture, id uuid.UUID) string {
			return c.status(x.t, "/export/audit.csv?first=1", "X-Berth-Act-As", id.String())
		},
	}},
	"ResourceGroup": {func(f *fixture) uuid.UUID { return f.opened() }, map[access.Operation]act{
		access.Create: made("createResourceGroup"), access.Update: change("updateResourceGroup", described),
		access.Delete: change("deleteResourceGroup", only),
		access.Grant: change("grantResourceGroup", func(c *column, _ *fixture, id uuid.UUID) vars {
			return vars{"resourceGroup": id, "user": c.user.ID}
		}),
	}},
	"ResourcePolicy": {func(f *fixture) uuid.UUID { return f.policy().ID }, map[access.Operation]act{
		access.Create: made("createResourcePolicy"), access.Update: change("updateResourcePolicy", renamed), access.Delete: change("deleteResourcePolicy", only),
	}},
	"ResourcePreset": {func(f *fixture) uuid.UUID { return f.preset() }, map[access.Operation]act{
		access.Create: made("createResourcePreset"), access.Update: change("updateResourcePreset", described), access.Delete: change("deleteResourcePreset", only),
	}},
	"Agent": {func(f *fixture) uuid.UUID {
		return f.Client.Agent.Create().SetName(f.name()).SetResourceGroupID(f.opened()).SaveX(f.System(f.t)).ID
	}, map[access.Operation]act{
		access.Update: change("updateAgent", func(_ *column, _ *fixture, id uuid.UUID) vars { return vars{"id": id, "schedulable": true} }),
	}},
	"Image": {func(f *fixture) uuid.UUID { return f.image().ID }, map[access.Operation]act{
		access.Create: made("registerImage"), access.Update: change("updateImage", described), access.Delete: change("deleteImage", only),
	}},
	"Volume": {func(f *fixture) uuid.UUID { return f.volume().ID }, map[access.Operation]act{
		access.Grant: change("grantVolume", func(c *column, _ *fixture, id uuid.UUID) vars {
			return vars{"volume": id, "user": c.user.ID, "permissions": []string{"MOUNT"}}
		}),
	}},
	"Role": {func(f *fixture) uuid.UUID { return f.held() }, map[access.Operation]act{
		access.Create: made("createRole"), access.Update: change("updateRole", described), access.Delete: change("deleteRole", only),
		access.Grant: change("grantRole", func(c *column, f *fixture, id uuid.UUID) vars {
			return vars{"role": id, "user": c.user.ID, "scope": "DOMAIN", "scopeId": f.A.ID}
		}),
	}},
	"Session": {func(f *fixture) uuid.UUID { return f.running() }, map[access.Operation]act{
		access.Update: change("renameSession", renamed), access.Delete: change("terminateSession", only),
		access.Enter: func(x *table, c *column, _ *fixture, id uuid.UUID) string {
			return c.status(x.t, "/sessions/"+id.String()+"/terminal", "", "")
		},
	}},
	"Deployment": {func(f *fixture) uuid.UUID { return f.deployment() }, map[access.Operation]act{
		access.Update: change("updateDeployment", described), access.Delete: change("deleteDeployment", only),
	}},
	"SessionTemplate": {func(f *fixture) uuid.UUID { return f.template(true) }, map[access.Operation]act{
		access.Create: made("createSessionTemplate"), access.Update: change("updateSessionTemplate", renamed), access.Delete: change("deleteSessionTemplate", only),
	}},
	"ObjectStorage": {func(f *fixture) uuid.UUID { return f.objects(true) }, map[access.Operation]act{
		access.Create: made("createObjectStorage"), access.Update: change("updateObjectStorage", renamed),
		access.Delete: change("deleteObjectStorage", only), access.Transfer: change("testObjectStorage", only),
	}},
	"Vfolder": {func(f *fixture) uuid.UUID { return f.shared() }, map[access.Operation]act{
		access.Create: made("createVfolder"), access.Update: change("updateVfolder", renamed), access.Delete: change("trashVfolder", only),
		access.ReadFiles: change("createDownload", func(_ *column, _ *fixture, id uuid.UUID) vars { return vars{"vfolder": id, "path": ""} }),
		access.WriteFiles: change("createDirectories", func(_ *column, f *fixture, id uuid.UUID) vars {
			return vars{"vfolder": id, "paths": []string{f.name()}}
		}),
	}},
}

// TestPermissionsAreWhatIsEnforced performs every operation on objects of every type with
// permissions, as every role, and compares the results with the permissions that the API shows.
func TestPermissionsAreWhatIsEnforced(t *testing.T) {
	t.Parallel()
	x := newTable(t)
	compared, allowed := 0, 0
	for _, def := range nodeTypes(schema()) {
		if f := def.Fields.ForName("permissions"); f == nil || f.Type.Name() != "AccessOperation" {
			continue
		}
		how, ok := handled[def.Name]
		if !ok {
			t.Errorf("%s has permissions: add its operations", def.Name)
			continue
		}
		query := "query($id: ID!) { node(id: $id) { ... on " + def.Name + " { permissions } } }"
		for _, c := range x.columns {
			for _, scope := range matrixScopes {
				for _, op := range access.Operations()[1:] {
					x.n++
					f := &fixture{World: x.World, t: t, n: x.n, scope: scope}
					f.owner, f.project, f.domain = x.at(c, scope)
					id := how.make(f)
					g := &ent.RoleGrant{}
					if c.name == "object" && scope == "foreign" {
						g = x.grant(c.user, access.OnObject, id)
					}
					var got struct {
						Node *struct{ Permissions []string }
					}
					c.as.Must(t, query, vars{"id": id}, &got)
					shown := got.Node != nil && slices.Contains(got.Node.Permissions, strings.ToUpper(string(op)))
					if got.Node != nil && !slices.Contains(got.Node.Permissions, "READ") {
						t.Errorf("%s of %s, as %s: seen, and read is not shown", def.Name, scope, c.name)
					}
					enforced := "n"
					if do := how.acts[op]; do != nil {
						enforced = do(x, c, f, id)
					}
					if g.ID != uuid.Nil {
						_ = x.Client.RoleGrant.DeleteOne(g).Exec(x.System(t)) // deleted together with its object
					}
					if def.Name == "User" && scope == "own" && op == access.Impersonate {
						enforced = map[bool]string{true: "y", false: "n"}[shown] // acting as oneself is always possible
					}
					if shown != (enforced == "y") {
						t.Errorf("%s of %s, as %s: %s is shown: %v, and done: %s", def.Name, scope, c.name, op, shown, enforced)
					}
					if compared++; shown {
						allowed++
					}
				}
			}
		}
	}
	t.Logf("%d compared, %d allowed", compared, allowed)
	if allowed < 100 {
		t.Errorf("only %d were allowed: nothing is shown", allowed)
	}
}

// status returns the verdict on a GET request with a header.
func (c *column) status(t testing.TB, path, header, value string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.as.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = c.as.Header.Clone()
	if header != "" {
		r.Header.Set(header, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "n"
	case http.StatusNotFound:
		return "-"
	}
	return "y"
}

// opened returns a resource group that is granted to the owner.
func (f *fixture) opened() uuid.UUID {
	g := f.group()
	g.Update().SetPublic(false).ExecX(f.System(f.t))
	f.Client.GroupGrant.Create().SetResourceGroup(g).SetUser(f.owner).ExecX(f.System(f.t))
	return g.ID
}

// held returns a role that the owner has.
func (f *fixture) held() uuid.UUID {
	r := f.role()
	f.Client.RoleGrant.Create().SetRole(r).SetUser(f.owner).SetScope("domain").SetScopeID(f.domain.ID).ExecX(f.System(f.t))
	return r.ID
}

// running returns a session of the owner with a container.
// build is a build in a session.
func (f *fixture) build() uuid.UUID {
	return f.Client.ImageBuild.Create().SetDomainID(f.domain.ID).SetProjectID(f.project.ID).SetOwnerID(f.owner.ID).
		SetRepository("users/u/i").SetTag("1").SetName("i:1").SetKind("recipe").SetDockerfile("FROM i").SetDigest("-").SetBase("i").
		SetSessionID(f.session()).SaveX(f.System(f.t)).ID
}

func (f *fixture) running() uuid.UUID {
	ctx, id := f.System(f.t), f.session()
	f.Client.Session.UpdateOneID(id).SetStatus(lifecycle.Running).ExecX(ctx)
	a := f.Client.Agent.Create().SetName(f.name()).SetResourceGroup(f.Group).SaveX(ctx)
	f.Client.Kernel.Create().SetSessionID(id).SetSlots(nil).SetStatus(lifecycle.Running).SetAgent(a).
		SetDomainID(f.domain.ID).SetProjectID(f.project.ID).SetOwnerID(f.owner.ID).ExecX(ctx)
	return id
}
