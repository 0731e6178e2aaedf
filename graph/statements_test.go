package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/graph/exec"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/managertest"
)

func schema() *ast.Schema { return exec.NewExecutableSchema(exec.Config{}).Schema() }

// path is a chain of object fields that begins with a root field.
type path struct {
	name  string // a.b.c
	query string
	depth int
}

// paths lists every chain of object fields below the query's lists that visits no type twice. Every
// nested edge is in one of them.
func paths(s *ast.Schema, longest int) []path {
	var out []path
	for _, f := range s.Query.Fields {
		if f.Name[0] == '_' || f.Name == "node" || f.Name == "nodes" || f.Name == "server" || f.Name == "idleDryRun" || requires(f) { // those have required arguments
			continue
		}
		walk(s, f, nil, map[string]bool{}, longest, func(chain []*ast.FieldDefinition) {
			p := path{}
			for _, c := range chain {
				p.name += "." + c.Name
			}
			p.name = p.name[1:]
			p.query, p.depth = render(s, chain), len(chain)
			out = append(out, p)
		})
	}
	return out
}

func walk(s *ast.Schema, f *ast.FieldDefinition, chain []*ast.FieldDefinition, seen map[string]bool, longest int, visit func([]*ast.FieldDefinition)) {
	def := s.Types[f.Type.Name()]
	if computed(f) && len(chain) > 0 {
		visit(append(append([]*ast.FieldDefinition(nil), chain...), f))
		return
	}
	if def.Kind != ast.Object || slices.Contains([]string{"pageInfo", "files", "search", "orphans"}, f.Name) {
		return // storage proxies report the content of volumes
	}
	chain = append(append([]*ast.FieldDefinition(nil), chain...), f)
	node := nodeOf(s, def)
	if seen[node.Name] {
		return
	}
	seen[node.Name] = true
	defer delete(seen, node.Name)
	visit(chain)
	if len(chain) == longest {
		return
	}
	for _, inner := range node.Fields {
		walk(s, inner, chain, seen, longest, visit)
	}
}

// computed lists the leaf fields that need a statement of their own.
func computed(f *ast.FieldDefinition) bool {
	return slices.Contains([]string{"occupied", "capacity", "sessionsLeft", "drained", "proxy", "effectiveLimitBytes", "suggestedSlots"}, f.Name)
}

// survey returns how many more statements some fields need, because they read the whole cluster or
// objects in between.
func survey(name string) (more int) {
	for field, n := range map[string]int{"shareHolders": 6, "occupancyAudit": 6, "diagnosis": 10, "effectiveLimitBytes": 1, ".use": 1} {
		if strings.Contains(name, field) {
			more += n
		}
	}
	// The variables of kernels are read from their allocations, devices, sessions and arrays, once for
	// all kernels.
	if strings.Contains(name, ".kernels") || strings.HasPrefix(name, "kernels") {
		more += 5
	}
	// The request of a session is read from its row and the rows of six other tables.
	if strings.Contains(name, ".request") && !strings.Contains(name, "sessionTemplates.request") {
		more += 7
	}
	for _, folder := range []string{"vfolders", "vfolder", "clonedFrom"} { // by way of the quota scope
		if strings.Contains(name, folder+".volume") {
			more++
		}
	}
	return more
}

// nodeOf returns the type of a connection's nodes, and other types as they are.
func nodeOf(s *ast.Schema, def *ast.Definition) *ast.Definition {
	if e := def.Fields.ForName("edges"); e != nil {
		return s.Types[s.Types[e.Type.Name()].Fields.ForName("node").Type.Name()]
	}
	return def
}

func render(s *ast.Schema, chain []*ast.FieldDefinition) string {
	open, end := "{", "}"
	for i, f := range chain {
		def := s.Types[f.Type.Name()]
		open += " " + f.Name
		if def.Kind != ast.Object {
			break
		}
		if def.Fields.ForName("edges") != nil {
			open += fmt.Sprintf("(first: %d) { totalCount edges { node {", max(5, 12-7*i))
			end = "} } }" + end
		} else {
			open += " {"
			end = "}" + end
		}
		for _, inner := range nodeOf(s, def).Fields {
			if k := s.Types[inner.Type.Name()].Kind; !computed(inner) && !requires(inner) && (k == ast.Scalar || k == ast.Enum) {
				open += " " + inner.Name
			}
		}
	}
	return open + end
}

// The number of SQL statements for a list does not grow with its rows. It is at most one for each
// level, one for each total, and two for the login.
func TestStatementsDoNotGrowWithRows(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root, member := m.As(t, w.Superadmin), m.As(t, w.A.Member)
	// A busy machine can split what a loader reads, so a query with too many statements is
	// repeated at a manager that collects keys for longer.
	w.Configure = func(c *manager.Config) { c.BatchWait = 100 * time.Millisecond }
	slow := w.Quiet(t)
	rows := seed(t, w)
	all := paths(schema(), 4)
	if len(all) < 200 {
		t.Fatalf("only %d chains of fields: does the walk see the schema?", len(all))
	}
	t.Logf("%d chains of fields", len(all))
	for _, who := range []struct {
		name string
		*managertest.Client
		slow *managertest.Client
	}{{"superadmin", root, slow.As(t, w.Superadmin)}, {"member", member, slow.As(t, w.A.Member)}} {
		few := map[string][]string{}
		rows.more(2)
		all := slices.DeleteFunc(slices.Clone(all), func(p path) bool { // forbidden fields need no statement
			return who.Ask(t, p.query, nil, nil).Code() == problem.CodePermissionDenied
		})
		if len(all) < 200 {
			t.Fatalf("only %d chains of fields are open to the %s", len(all), who.name)
		}
		for range 2 { // the first time may update the last use of a login
			for _, p := range all {
				got := w.Statements.Of(func() { who.Must(t, p.query, nil, nil) })
				if few[p.name] == nil || len(got) < len(few[p.name]) {
					few[p.name] = got
				}
			}
		}
		rows.more(4)
		for _, p := range all {
			// Two for the login, one for each level, and one for the total of each connection.
			most := 2 + p.depth + survey(p.name) + strings.Count(p.query, "totalCount")
			var many []string
			for _, client := range []*managertest.Client{who.Client, who.Client, who.slow, who.slow, who.slow} {
				many = w.Statements.Of(func() { client.Must(t, p.query, nil, nil) })
				if len(many) <= min(most, len(few[p.name])) {
					break
				}
			}
			if len(many) > len(few[p.name]) {
				t.Errorf("%s, %s: %d statements become %d\n%s", who.name, p.name, len(few[p.name]), len(many), strings.Join(many, "\n"))
			}
			if len(many) > most {
				t.Errorf("%s, %s: %d statements, at most %d\n%s", who.name, p.name, len(many), most, strings.Join(many, "\n"))
			}
		}
	}
}

func TestNodesAreReadTogether(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	root := m.As(t, w.Superadmin)
	rows := seed(t, w)
	rows.more(9)
	var ids []string
	for _, s := range w.Client.Session.Query().AllX(rows.ctx) {
		ids = append(ids, s.ID.String())
	}
	const q = `query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Session { owner { email } kernels { allocations { device { deviceId } } } } } }`
	count := func(n int) int {
		var got struct{ Nodes []struct{ ID string } }
		list := w.Statements.Of(func() { root.Must(t, q, managertest.Vars{"ids": ids[:n]}, &got) })
		for i := range got.Nodes {
			if got.Nodes[i].ID != ids[i] {
				t.Errorf("node %d is %s, want %s", i, got.Nodes[i].ID, ids[i])
			}
		}
		return len(list)
	}
	count(2)
	if few, many := count(3), count(27); few != many {
		t.Errorf("3 nodes cost %d statements, 27 cost %d", few, many)
	}
	if errs := root.Ask(t, q, managertest.Vars{"ids": slices.Repeat(ids[:1], 101)}, nil); errs.Code() != "INVALID_ARGUMENT" {
		t.Errorf("101 nodes: %s", errs)
	}
	// An ID that never existed gives null, without an error.
	var got struct{ Nodes []*struct{ ID string } }
	root.Must(t, q, managertest.Vars{"ids": []string{ids[0], "00000000-0000-7000-8e00-000000000000", ids[1]}}, &got)
	if len(got.Nodes) != 3 || got.Nodes[0] == nil || got.Nodes[1] != nil || got.Nodes[2] == nil {
		t.Errorf("nodes %v", got.Nodes)
	}
}
