package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/problem"
)

// filtered is a connection with a filter: a root field, or a field of an object.
type filtered struct {
	edge  edge
	below string // type of the object, "" for a root field
}

func filteredEdges(s *ast.Schema) []filtered {
	var out []filtered
	add := func(def *ast.Definition, below string) {
		for _, f := range def.Fields {
			if leaf := nodeOf(s, s.Types[f.Type.Name()]); isNode(leaf) && f.Arguments.ForName("where") != nil {
				out = append(out, filtered{edge{[]*ast.FieldDefinition{f}, leaf}, below})
			}
		}
	}
	add(s.Query, "")
	for _, def := range nodeTypes(s) {
		add(def, def.Name)
	}
	return out
}

// list returns the IDs that pass a filter, and checks that the total count equals their number.
func (x *table) list(c *column, f filtered, args string, v vars) ([]string, bool) {
	input := f.edge.fields[0].Arguments.ForName("where").Type.Name()
	name, inner := f.below+"."+f.edge.name(), f.edge.query("(first: 100, where: $where"+args+")")
	query, ids := "query($where: "+input+") {"+inner+"}", []uuid.UUID(nil)
	if f.below != "" {
		ids = x.ids(f.below)
		v["ids"] = ids
		query = "query($where: " + input + ", $ids: [ID!]!) { nodes(ids: $ids) { ... on " + f.below + " {" + inner + "} } }"
	}
	got := x.ask(c, name, query, v, ids)
	if got.codes[""] == problem.CodePermissionDenied {
		return nil, false
	}
	if len(got.codes) > 0 {
		x.t.Errorf("%s as %s with %v: %v", name, c.name, v["where"], got.codes)
	}
	var list []string
	for _, leaves := range got.leaves {
		list = append(list, leaves...)
	}
	if f.below == "" && got.page.total != len(list) && len(list) < 100 {
		x.t.Errorf("%s as %s with %v: lists %d and counts %d", name, c.name, v["where"], len(list), got.page.total)
	}
	return list, true
}

// values returns the values to try for a filter; k has the rows of another user.
func values(s *ast.Schema, f *ast.FieldDefinition, kind string, k kit) []any {
	owners := map[string]string{
		"id": kind, "idIn": kind, "ownerID": "User", "userID": "User", "actorID": "User", "actedAsID": "User", "subjectID": "User",
		"projectID": "Project", "domainID": "Domain", "entityID": "Session", "deploymentID": "Deployment",
	}
	var out []any
	switch def := s.Types[f.Type.Name()]; {
	case def.Name == "ID":
		out = []any{k[owners[f.Name]]}
	case strings.HasSuffix(f.Name, "IsNil"):
		out = []any{true} // false is like no filter
	case def.Name == "Boolean":
		out = []any{true, false}
	case def.Name == "Int":
		out = []any{1, 7}
	case def.Name == "Time":
		out = []any{"2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"}
	case def.Kind == ast.Enum:
		for _, v := range def.EnumValues {
			out = append(out, v.Name)
		}
	case def.Name == "String":
		out = []any{"kit-member-b", "member-b@example.org", "member-b", "kit-member-b.example.org/i:1", "i:1", "x86_64", "cpu", "test", "OK", ""}
	}
	if f.Type.Elem != nil {
		for i := range out {
			out[i] = []any{out[i]}
		}
	}
	return out
}

// TestNoFilterTellsOfHiddenRows tries every filter and order of every connection with values from
// other users' rows, plain and nested. A filtered list must not contain or count a row that the
// list without a filter does not contain.
func TestNoFilterTellsOfHiddenRows(t *testing.T) {
	t.Parallel()
	x := newTable(t)
	s, asked, finds := schema(), 0, 0
	stranger := x.kits[x.B.Member.ID]
	superadmin := x.columns[slices.IndexFunc(x.columns, func(c *column) bool { return c.name == "superadmin" })]
	for _, f := range filteredEdges(s) {
		where := s.Types[f.edge.fields[0].Arguments.ForName("where").Type.Name()]
		for _, c := range x.columns {
			if c.name == "superadmin" || c.name == "monitor" {
				continue
			}
			all, open := x.list(c, f, "", vars{"where": nil})
			if !open {
				continue
			}
			for _, field := range where.Fields {
				def := s.Types[field.Type.Name()]
				if field.Name == "not" || field.Name == "and" || field.Name == "or" {
					continue
				}
				tries := values(s, field, f.edge.leaf.Name, stranger)
				if len(tries) == 0 || def.Kind == ast.InputObject {
					t.Errorf("%s.%s: add values to try", where.Name, field.Name)
				}
				for _, value := range tries {
					plain := vars{field.Name: value}
					for form, w := range map[string]vars{
						"plain": plain, "not": {"not": plain},
						"nested": {"and": []vars{{"or": []vars{{"not": vars{"not": plain}}, {"and": []vars{plain, plain}}}}}},
					} {
						asked++
						got, _ := x.list(c, f, "", vars{"where": w})
						for _, id := range got {
							if !slices.Contains(all, id) {
								t.Errorf("%s.%s as %s, %s %s %v: shows %s, which the viewer cannot see", f.below, f.edge.name(), c.name, form, field.Name, value, id)
							}
						}
					}
					if c.name == "user" {
						shown, _ := x.list(superadmin, f, "", vars{"where": plain})
						if slices.Contains(shown, stranger[f.edge.leaf.Name].String()) {
							finds++ // without the row rules, the filter finds the other user's row
						}
					}
				}
			}
			orders := f.edge.fields[0].Arguments.ForName("orderBy")
			if orders == nil {
				continue
			}
			for _, by := range s.Types[s.Types[orders.Type.Name()].Fields.ForName("field").Type.Name()].EnumValues {
				asked++
				got, _ := x.list(c, f, fmt.Sprintf(", orderBy: [{field: %s, direction: DESC}]", by.Name), vars{"where": nil})
				slices.Sort(got)
				slices.Sort(all)
				if !slices.Equal(got, all) {
					t.Errorf("%s.%s as %s: by %s it lists others", f.below, f.edge.name(), c.name, by.Name)
				}
			}
		}
	}
	t.Logf("%d filters and orders tried, %d of which find the other user's row for a viewer who can see it", asked, finds)
	if finds < 50 {
		t.Errorf("only %d filters find the other user's row for a superadmin: the test shows nothing", finds)
	}
}

// TestFiltersThatSayNothing sends empty filters, which are rejected or ignored.
func TestFiltersThatSayNothing(t *testing.T) {
	t.Parallel()
	x := newTable(t)
	for _, where := range []any{nil, vars{}} {
		for _, q := range []string{
			`query($w: UserWhereInput) { users(where: $w) { totalCount } }`,
			`query($w: UserWhereInput) { domains { edges { node { users(where: $w) { totalCount } } } } }`,
			`{ domains(where: null) { edges { node { users(where: null) { totalCount } } } } }`,
		} {
			x.columns[0].as.Must(t, q, vars{"w": where}, nil)
		}
	}
	for _, where := range []vars{{"not": vars{}}, {"and": []vars{{}}}, {"or": []vars{{"idIn": []string{}}, {"not": vars{"not": vars{}}}}}} {
		errs := x.columns[0].as.Ask(t, `query($w: UserWhereInput) { users(where: $w) { totalCount } }`, vars{"w": where}, nil)
		if errs.Code() != problem.CodeInvalidArgument {
			t.Errorf("%v: %s", where, errs)
		}
	}
}
