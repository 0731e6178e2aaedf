package graph_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

var update = flag.Bool("update", false, "rewrite testdata/access.txt, to be reviewed")

// fixture has the objects for one mutation by one role on one scope.
type fixture struct {
	*managertest.World
	t       testing.TB
	n       int       // makes names unique
	scope   string    // one of matrixScopes
	owner   *ent.User // owner of the fixture
	domain  *ent.Domain
	project *ent.Project
}

func (f *fixture) name() string { return fmt.Sprintf("x%d", f.n) }

// cell returns the input of a mutation. All its IDs are of objects in the fixture's scope.
type cell func(f *fixture) managertest.Vars

// verdictOf returns y for allowed (success, or an error for a reason other than access), n for
// denied, and - for an object that seems not to exist.
func verdictOf(code string) string {
	switch code {
	case problem.CodePermissionDenied, problem.CodeUnauthenticated:
		return "n"
	case problem.CodeNotFound:
		return "-"
	case problem.CodeInternal:
		return "!"
	}
	return "y"
}

// TestAccessMatrix requests every field of the schema as every role, on objects of their own, of
// their project, of their domain and of other domains, and compares the results with the reviewed
// table in testdata/access.txt. A field without a row in the table fails.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	x := newTable(t)
	x.nodes()
	x.edges()
	x.queries()
	x.subscriptions()
	x.mutations()
	unexpected := compareMatrix(t, x.report.text())
	r := x.report
	fmt.Printf("%d fields × %d roles × %d scopes = %d cells: %d allowed, %d refused, %d unexpected\n",
		r.fields(), len(x.columns), len(matrixScopes), r.allowed+r.refused, r.allowed, r.refused, unexpected)
}

// mutations adds the section of the mutations.
func (x *table) mutations() {
	x.report.section("mutation")
	for _, mutation := range mutationNames() {
		if matrix[mutation] == nil {
			x.t.Errorf("%s has no row in the access matrix", mutation)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		mutation, _, _ := strings.Cut(name, " ")
		if schema().Mutation.Fields.ForName(mutation) == nil {
			x.t.Errorf("%s has a row in the access matrix and is not in the schema", mutation)
			continue
		}
		make, row := matrix[name], x.report.row(name)
		for _, c := range x.columns {
			got := ""
			for _, scope := range matrixScopes {
				x.n++
				f := &fixture{World: x.World, t: x.t, n: x.n, scope: scope}
				f.owner, f.project, f.domain = x.at(c, scope)
				got += x.mutate(c, scope, mutation, make(f))
			}
			row.add(got)
		}
	}
}

// mutate returns the result of one mutation. If grants are on single objects, the caller has every
// permission on the first object of the input.
func (x *table) mutate(c *column, scope, mutation string, input managertest.Vars) string {
	if c.name == "object" && scope == "foreign" {
		if id := subjectOf(input); id != uuid.Nil {
			g := x.grant(c.user, access.OnObject, id)
			defer x.Client.RoleGrant.Delete().Where(rolegrant.ID(g.ID)).ExecX(x.System(x.t))
		}
	}
	query := "mutation { " + mutation + " { __typename } }"
	if input != nil {
		query = fmt.Sprintf("mutation($input: %s!) { %s(input: $input) { __typename } }", inputOf(mutation), mutation)
	}
	errs := c.as.Ask(x.t, query, managertest.Vars{"input": input}, nil)
	v := verdictOf(errs.Code())
	if v == "!" || len(errs) > 0 && strings.Contains(errs.String(), "Unknown field") {
		x.t.Errorf("%s by %s on %s: %s", mutation, c.name, scope, errs)
	}
	if v == "y" {
		if errs := c.as.Ask(x.t, "{ viewer { initialPassword } }", nil, nil); len(errs) > 0 {
			c.as = x.m.As(x.t, c.user) // the mutation ended the login of its caller
		}
	}
	return v
}

// subjectOf returns the ID of the object that an input changes.
func subjectOf(input managertest.Vars) uuid.UUID {
	for _, field := range []string{"id", "resourceGroup", "vfolder", "volume", "role", "project", "user", "domain"} {
		if id, ok := input[field].(uuid.UUID); ok {
			return id
		}
	}
	return uuid.Nil
}

func mutationNames() []string {
	var names []string
	for _, f := range schema().Mutation.Fields {
		if !strings.HasPrefix(f.Name, "__") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

func inputOf(mutation string) string {
	return schema().Mutation.Fields.ForName(mutation).Arguments.ForName("input").Type.Name()
}
