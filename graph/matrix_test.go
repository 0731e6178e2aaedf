package graph_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/graph/exec"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

var update = flag.Bool("update", false, "write testdata/access.txt anew, to be reviewed")

// The scopes of the matrix: how what is asked for stands to who asks.
var matrixScopes = []string{"own", "project", "domain", "foreign"}

// fixture is what one cell of the matrix works on, made for that cell alone.
type fixture struct {
	*managertest.World
	t       testing.TB
	n       int       // makes names unique
	scope   string    // one of matrixScopes
	owner   *ent.User // of what is asked for
	domain  *ent.Domain
	project *ent.Project
}

func (f *fixture) name() string { return fmt.Sprintf("x%d", f.n) }

// cell is how one mutation is asked for: its input, all of whose ids are of the
// fixture's scope.
type cell func(f *fixture) managertest.Vars

// verdict of one cell: y allowed (it went through, or failed for another reason
// than access), n denied, - as if it did not exist.
func verdict(errs managertest.Errors) string {
	switch errs.Code() {
	case problem.CodePermissionDenied, problem.CodeUnauthenticated:
		return "n"
	case problem.CodeNotFound:
		return "-"
	case problem.CodeInternal:
		return "!"
	}
	return "y"
}

// TestAccessMatrix asks every mutation as every role on what is his own, of
// his project, of his domain and of strangers, and compares with the reviewed
// table in testdata/access.txt. A mutation without a row fails.
func TestAccessMatrix(t *testing.T) {
	w := managertest.New(t)
	m := w.Quiet(t)
	roles := []struct {
		name string
		user *ent.User
	}{
		{"user", w.A.Member}, {"lead", w.A.Lead}, {"admin", w.A.Admin}, {"superadmin", w.Superadmin}, {"monitor", w.Monitor},
	}
	ctx := w.System(t)
	for _, u := range []*ent.User{w.A.Admin, w.Superadmin, w.Monitor} { // everybody has a project of his own
		w.Client.Membership.Create().SetUser(u).SetProject(w.A.Project).ExecX(ctx)
	}
	colleague := w.Client.User.Create().SetEmail("colleague@example.org").SetUsername("colleague").
		SetPasswordHash(w.A.Member.PasswordHash).SetDomain(w.A.Domain).SaveX(ctx)
	w.Client.Membership.Create().SetUser(colleague).SetProject(w.A.Project).ExecX(ctx)
	other := w.Client.Project.Create().SetName("other").SetDomain(w.A.Domain).SaveX(ctx)
	w.Client.Membership.Create().SetUser(w.A.Loner).SetProject(other).ExecX(ctx)

	clients := map[string]*managertest.Client{}
	for _, role := range roles {
		clients[role.name] = m.As(t, role.user)
	}
	var out bytes.Buffer
	out.WriteString("# own project domain foreign: y allowed, n denied, - as if it did not exist\n")
	fmt.Fprintf(&out, "%-26s %-8s %-8s %-8s %-11s %s\n", "mutation", "user", "lead", "admin", "superadmin", "monitor")
	n, cells, allowed := 0, 0, 0
	for _, mutation := range mutationNames() {
		make, ok := matrix[mutation]
		if !ok {
			t.Errorf("%s has no row in the access matrix", mutation)
			continue
		}
		row := []any{mutation}
		for _, role := range roles {
			got := ""
			for _, scope := range matrixScopes {
				n++
				f := &fixture{World: w, t: t, n: n, scope: scope, domain: w.A.Domain, project: w.A.Project}
				switch scope {
				case "own":
					f.owner = role.user
				case "project":
					f.owner = colleague
				case "domain":
					f.owner, f.project = w.A.Loner, other
				case "foreign":
					f.owner, f.project, f.domain = w.B.Member, w.B.Project, w.B.Domain
				}
				input := make(f)
				query := "mutation { " + mutation + " { __typename } }"
				if input != nil {
					query = fmt.Sprintf("mutation($input: %s!) { %s(input: $input) { __typename } }", inputOf(mutation), mutation)
				}
				errs := clients[role.name].Ask(t, query, managertest.Vars{"input": input}, nil)
				v := verdict(errs)
				if v == "!" || len(errs) > 0 && strings.Contains(errs.String(), "Unknown field") {
					t.Errorf("%s by %s on %s: %s", mutation, role.name, scope, errs)
				}
				if v == "y" {
					allowed++
					if errs := clients[role.name].Ask(t, "{ viewer { initialPassword } }", nil, nil); len(errs) > 0 {
						clients[role.name] = m.As(t, role.user) // he ended his own login
					}
				}
				cells++
				got += v
			}
			row = append(row, got)
		}
		fmt.Fprintf(&out, "%-26s %-8s %-8s %-8s %-11s %s\n", row...)
	}
	t.Logf("%d cells, %d allowed", cells, allowed)
	compareMatrix(t, out.Bytes())
}

func compareMatrix(t *testing.T, got []byte) {
	t.Helper()
	const file = "testdata/access.txt"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("access is not as reviewed (-want +got):\n%s", diff)
	}
}

func mutationNames() []string {
	var names []string
	for _, f := range exec.NewExecutableSchema(exec.Config{}).Schema().Mutation.Fields {
		if !strings.HasPrefix(f.Name, "__") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

func inputOf(mutation string) string {
	return exec.NewExecutableSchema(exec.Config{}).Schema().Mutation.Fields.ForName(mutation).Arguments.ForName("input").Type.Name()
}
