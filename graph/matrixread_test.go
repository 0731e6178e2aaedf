package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

// seen is the answer to one query: the leaves of each requested object.
type seen struct {
	leaves map[string][]string // by the object's id, "" without one
	codes  map[string]string   // error codes by the object's id, "" without one
	page   struct {
		total, count int
		next         string
	}
}

func (s *seen) verdict(id string) string {
	if len(s.leaves[id]) > 0 {
		return "y"
	}
	if code, failed := s.codes[id]; failed {
		return verdictOf(code)
	}
	return "-"
}

// ask sends a query of one root field. For nodes, ids are the requested objects, and the answer is
// split by object.
func (x *table) ask(c *column, what, query string, vars managertest.Vars, ids []uuid.UUID) *seen {
	var data map[string]json.RawMessage
	errs := c.as.Ask(x.t, query, vars, &data)
	out := &seen{leaves: map[string][]string{}, codes: map[string]string{}}
	for _, e := range errs {
		if e.Extensions.Code == problem.CodeInternal || e.Extensions.Code == "" {
			x.t.Errorf("%s as %s: %s\n%s", what, c.name, errs, query)
		}
		id := ""
		if len(e.Path) > 1 && ids != nil {
			if i, ok := e.Path[1].(float64); ok {
				id = ids[int(i)].String()
			}
		} else { // an error of the whole query
			for _, one := range ids {
				out.codes[one.String()] = e.Extensions.Code
			}
		}
		out.codes[id] = e.Extensions.Code
	}
	for _, raw := range data {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			x.t.Fatal(err)
		}
		list, many := v.([]any)
		if ids == nil || !many {
			out.collect("", v)
			continue
		}
		for i, one := range list {
			out.collect(ids[i].String(), one)
		}
	}
	return out
}

// collect adds the leaves in an answer.
func (s *seen) collect(id string, v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			s.collect(id, one)
		}
	case map[string]any:
		for key, inner := range v {
			switch {
			case key == "leaf" && inner != nil:
				s.leaves[id] = append(s.leaves[id], fmt.Sprint(inner))
			case key == "totalCount":
				s.page.total = int(inner.(float64))
			case key == "edges":
				s.page.count += len(inner.([]any))
				s.collect(id, inner)
			case key == "pageInfo":
				s.page.next = ""
				if p := inner.(map[string]any); p["hasNextPage"] == true {
					s.page.next = p["endCursor"].(string)
				}
			default:
				s.collect(id, inner)
			}
		}
	}
}

// pages requests all pages of a root connection, and checks that totalCount equals the number of
// entries.
func (x *table) pages(c *column, e edge) *seen {
	f := e.fields[0]
	if schema().Types[f.Type.Name()].Fields.ForName("edges") == nil {
		return x.ask(c, f.Name, "{"+e.query("")+"}", nil, nil)
	}
	var all *seen
	for after := any(nil); ; {
		got := x.ask(c, f.Name, "query($after: Cursor) {"+e.query("(first: 100, after: $after)")+"}", managertest.Vars{"after": after}, nil)
		if all == nil {
			all = got
		} else {
			all.leaves[""] = append(all.leaves[""], got.leaves[""]...)
			all.page.count += got.page.count
		}
		if got.page.next == "" {
			if all.page.count != got.page.total && len(got.codes) == 0 {
				x.t.Errorf("%s as %s lists %d and counts %d", f.Name, c.name, all.page.count, got.page.total)
			}
			return all
		}
		after = got.page.next
	}
}

// reached reports, for each scope, whether one of its rows is among the leaves.
func (x *table) reached(c *column, e edge, got *seen) (cells string) {
	var leaves []string
	for _, list := range got.leaves {
		leaves = append(leaves, list...)
	}
	if len(leaves) == 0 && got.codes[""] == problem.CodePermissionDenied {
		return "nnnn"
	}
	for _, scope := range matrixScopes {
		owner, _, _ := x.at(c, scope)
		k := x.kits[owner.ID]
		if slices.ContainsFunc(leaves, func(id string) bool { return k.has(e.leaf.Name, id) }) {
			cells += "y"
		} else {
			cells += "-"
		}
	}
	return cells
}

// onDisk are the edges to files on a volume, which need a storage proxy. The kits have none.
var onDisk = map[string]bool{"Volume.orphans.missing": true}

// nodes adds the section of the objects by ID.
func (x *table) nodes() {
	x.report.section("object by its id")
	for _, def := range nodeTypes(schema()) {
		ids := x.ids(def.Name)
		if len(ids) == 0 {
			x.t.Errorf("%s has no row in the kits of the access matrix", def.Name)
			continue
		}
		query := "query($ids: [ID!]!) { nodes(ids: $ids) { ... on " + def.Name + " { leaf: id } } }"
		x.holding(def.Name, func() { x.below(def.Name, def.Name, query, ids) })
	}
}

func nodeTypes(s *ast.Schema) []*ast.Definition {
	list := slices.Clone(s.PossibleTypes["Node"])
	slices.SortFunc(list, func(a, b *ast.Definition) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// below requests a field of objects that have IDs. The scope is that of each object.
func (x *table) below(name, kind, query string, ids []uuid.UUID) {
	row := x.report.row(name)
	for _, c := range x.columns {
		got := x.ask(c, name, query, managertest.Vars{"ids": ids}, ids)
		cells := ""
		for _, scope := range matrixScopes {
			owner, _, _ := x.at(c, scope)
			cells += got.verdict(x.kits[owner.ID][kind].String())
		}
		row.add(cells)
	}
}

// edges adds the section of the fields of every visible object. The scope is that of the object
// that a field leads to or, if that has no ID, of the object with the field.
func (x *table) edges() {
	x.report.section("reached from any object in sight")
	for _, def := range nodeTypes(schema()) {
		ids := x.ids(def.Name)
		for _, e := range edgesOf(schema(), def, nil) {
			name := def.Name + "." + e.name()
			query := "query($ids: [ID!]!) { nodes(ids: $ids) { ... on " + def.Name + " {" + e.query("") + "} } }"
			x.holding(name, func() {
				if !isNode(e.leaf) {
					x.below(name, def.Name, query, ids)
					return
				}
				row := x.report.row(name)
				for _, c := range x.columns {
					row.add(x.reached(c, e, x.ask(c, name, query, managertest.Vars{"ids": ids}, ids)))
				}
				if !strings.Contains(row.String(), "y") && !onDisk[name] {
					x.t.Errorf("%s shows no row to any role: the kits lack a row", name)
				}
			})
		}
	}
}

// queries adds the section of the root fields: without arguments, and with each argument that is an
// ID.
func (x *table) queries() {
	x.report.section("query, with each id it takes")
	s := schema()
	for _, f := range s.Query.Fields {
		if f.Name[0] == '_' || f.Name == "node" || f.Name == "nodes" { // tested by nodes
			continue
		}
		if f.Name == "dryRun" {
			x.dryRun()
			continue
		}
		if f.Name == "imageAttachments" {
			x.attachments()
			continue
		}
		if f.Name == "chat" || f.Name == "exportChat" {
			x.chats(f)
			continue
		}
		if f.Name == "usageReport" {
			x.reports("usageReport", "UsageReportInput", "slot")
			continue
		}
		if f.Name == "waitReport" {
			x.reports("waitReport", "WaitReportInput", "count")
			continue
		}
		if f.Name == "waste" || f.Name == "capacityReport" || f.Name == "sizeAdvice" {
			x.statistics(f.Name)
			continue
		}
		if f.Name == "timeSeries" {
			x.histories()
			continue
		}
		if requires(f) {
			x.named(s, f)
			continue
		}
		x.plain(s, f)
		for _, a := range f.Arguments {
			def := s.Types[a.Type.Name()]
			switch {
			case a.Type.Name() == "ID":
				x.narrowed(f, a.Name, a.Name, "("+a.Name+": $id)")
			case def.Kind == ast.InputObject && strings.HasSuffix(def.Name, "WhereInput") && def.Fields.ForName("not") == nil:
				for _, inner := range def.Fields {
					if inner.Type.Name() == "ID" {
						x.narrowed(f, inner.Name, a.Name+"."+inner.Name, "("+a.Name+": {"+inner.Name+": $id})")
					}
				}
			}
		}
	}
}

func (x *table) plain(s *ast.Schema, f *ast.FieldDefinition) {
	leaf := nodeOf(s, s.Types[f.Type.Name()])
	list := []edge{{[]*ast.FieldDefinition{f}, leaf}}
	if !isNode(leaf) {
		list = append(list, edgesOf(s, leaf, list[0].fields)...)
	}
	for _, e := range list {
		x.holding(e.name(), func() {
			row := x.report.row(e.name())
			for _, c := range x.columns {
				got := x.pages(c, e)
				if isNode(e.leaf) {
					row.add(x.reached(c, e, got))
				} else {
					row.add(strings.Repeat(got.verdict(""), 4))
				}
			}
		})
	}
}

// dryRun tries a session in a project of each scope. The error for a project that the viewer cannot
// see is in the report.
func (x *table) dryRun() {
	row := x.report.row("dryRun(input.project)")
	for _, c := range x.columns {
		cells := ""
		for _, scope := range matrixScopes {
			x.n++
			f := &fixture{World: x.World, t: x.t, n: x.n, scope: scope}
			f.owner, f.project, f.domain = x.at(c, scope)
			var got struct {
				DryRun struct {
					Refusals []struct{ Code, Field string }
				}
			}
			errs := c.as.Ask(x.t, `query($in: CreateSessionInput!) { dryRun(input: $in) { verdict refusals { code field } } }`,
				managertest.Vars{"in": matrix["createSession"](f)}, &got)
			code := errs.Code()
			for _, r := range got.DryRun.Refusals {
				if r.Field == "project" {
					code = r.Code
				}
			}
			cells += verdictOf(code)
		}
		row.add(cells)
	}
}

// attachments requests what is attached to an image of each scope. The registries of those who can see
// the image do not answer.
func (x *table) attachments() {
	row := x.report.row("imageAttachments(image)")
	for _, c := range x.columns {
		cells := ""
		for _, scope := range matrixScopes {
			owner, _, _ := x.at(c, scope)
			errs := c.as.Ask(x.t, `query($id: ID!) { imageAttachments(image: $id) { kind } }`, managertest.Vars{"id": x.kits[owner.ID]["Image"]}, nil)
			cells += verdictOf(errs.Code())
		}
		row.add(cells)
	}
}

// reports requests a report about an owner of each scope, with every other filter too.
func (x *table) reports(field, input, leaf string) {
	for _, filter := range []struct{ name, kind string }{
		{"user", "User"}, {"project", "Project"}, {"domain", "Domain"}, {"resourceGroup", "ResourceGroup"}, {"agent", "Agent"}, {"image", "Image"},
	} {
		row := x.report.row(field + "(" + filter.name + ")")
		for _, c := range x.columns {
			cells := ""
			for _, scope := range matrixScopes {
				owner, _, _ := x.at(c, scope)
				got := map[string][]any{}
				in := map[string]any{"from": "2026-01-01T00:00:00Z", "by": []string{"USER"}, filter.name: x.kits[owner.ID][filter.kind]}
				if filter.kind == "User" {
					in[filter.name] = owner.ID
				}
				errs := c.as.Ask(x.t, "query($in: "+input+"!) { "+field+"(input: $in) { "+leaf+" } }", managertest.Vars{"in": in}, &got)
				if cell := verdictOf(errs.Code()); len(errs) > 0 || len(got[field]) > 0 {
					cells += cell
				} else {
					cells += "-"
				}
			}
			row.add(cells)
		}
	}
}

// statistics requests what an owner of each scope uses, or what is not about an owner.
func (x *table) statistics(field string) {
	row := x.report.row(field)
	for _, c := range x.columns {
		cells := ""
		for _, scope := range matrixScopes {
			owner, _, _ := x.at(c, scope)
			query := map[string]string{
				"capacityReport": `{ capacityReport(input: {from: "2026-01-01T00:00:00Z"}) { since } }`,
				"waste":          `{ waste(input: {report: MOST_SLOTS, first: 500}) { user } }`,
				"sizeAdvice":     fmt.Sprintf(`{ sizeAdvice(image: "%s") { session { id } } }`, x.kits[owner.ID]["Image"]),
			}[field]
			var got struct{ Waste []struct{ User string } }
			errs := c.as.Ask(x.t, query, nil, &got)
			cell := verdictOf(errs.Code())
			if field == "waste" && !slices.ContainsFunc(got.Waste, func(r struct{ User string }) bool { return r.User == owner.ID.String() }) && len(errs) == 0 {
				cell = "-"
			}
			cells += cell
		}
		row.add(cells)
	}
}

// histories requests the measurements of a session, an agent and a deployment of each scope.
func (x *table) histories() {
	for _, kind := range []string{"Session", "Agent", "Deployment"} {
		row := x.report.row("timeSeries(" + kind + ")")
		for _, c := range x.columns {
			cells := ""
			for _, scope := range matrixScopes {
				owner, _, _ := x.at(c, scope)
				errs := c.as.Ask(x.t, `query($id: ID!) { timeSeries(subjects: [$id], from: "2026-01-01T00:00:00Z") { name } }`, managertest.Vars{"id": x.kits[owner.ID][kind]}, nil)
				cells += verdictOf(errs.Code())
			}
			row.add(cells)
		}
	}
}

// names has the field that identifies an object of a type, where it is not its name.
var names = map[string]string{"User": "email", "Image": "reference"}

// named requests an object of each scope by its name. The answer for an object that the viewer
// cannot see equals that for one that does not exist.
func (x *table) named(s *ast.Schema, f *ast.FieldDefinition) {
	kind, by := f.Type.Name(), "name"
	if other := names[kind]; other != "" {
		by = other
	}
	ids := x.ids(kind)
	var known struct{ Nodes []struct{ ID, Leaf string } }
	x.m.As(x.t, x.Superadmin).Must(x.t, "query($ids: [ID!]!) { nodes(ids: $ids) { ... on "+kind+" { id leaf: "+by+" } } }", managertest.Vars{"ids": ids}, &known)
	name := map[string]string{}
	for _, n := range known.Nodes {
		name[n.ID] = n.Leaf
	}
	args := "(name: $name)"
	if f.Arguments.ForName("domain") != nil { // every domain has a project of the same name
		args = "(name: $name, domain: $domain)"
	}
	row := x.report.row(f.Name + "(name)")
	for _, c := range x.columns {
		nothing := x.ask(c, f.Name, "{"+edge{[]*ast.FieldDefinition{f}, s.Types[kind]}.query(`(name: "no such name")`)+"}", nil, nil)
		cells := ""
		for _, scope := range matrixScopes {
			owner, _, domain := x.at(c, scope)
			id := x.kits[owner.ID][kind].String()
			vars, open := managertest.Vars{"name": name[id]}, "query($name: String!) {"
			if args != "(name: $name)" {
				vars["domain"], open = domain.ID, "query($name: String!, $domain: ID) {"
			}
			got := x.ask(c, f.Name, open+edge{[]*ast.FieldDefinition{f}, s.Types[kind]}.query(args)+"}", vars, nil)
			if found := got.leaves[""]; len(found) > 0 && found[0] != id {
				got.leaves = nil
			}
			if v := got.verdict(""); v != "y" && v != nothing.verdict("") {
				x.t.Errorf("%s as %s on %s is %s, and a name that does not exist %s", f.Name, c.name, scope, v, nothing.verdict(""))
			}
			cells += got.verdict("")
		}
		row.add(cells)
	}
}

// chats requests the chat of each scope by its id.
func (x *table) chats(f *ast.FieldDefinition) {
	row, selects := x.report.row(f.Name+"(id)"), ""
	if f.Type.Name() == "Chat" {
		selects = " { id }"
	}
	for _, c := range x.columns {
		cells := ""
		for _, scope := range matrixScopes {
			owner, _, _ := x.at(c, scope)
			var got map[string]any
			errs := c.as.Ask(x.t, "query($id: ID!) { x: "+f.Name+"(id: $id)"+selects+" }", managertest.Vars{"id": x.kits[owner.ID]["Chat"]}, &got)
			switch {
			case len(errs) > 0:
				cells += verdictOf(errs.Code())
			case got["x"] == nil:
				cells += "-"
			default:
				cells += "y"
			}
		}
		row.add(cells)
	}
}

// kinds maps arguments of queries to the types of the objects that they name.
var kinds = map[string]string{"user": "User", "project": "Project", "domain": "Domain", "resourceGroup": "ResourceGroup", "checker": "IdleChecker", "deployment": "Deployment"}

// narrowed requests the objects that belong to the object of an argument.
func (x *table) narrowed(f *ast.FieldDefinition, arg, shown, args string) {
	kind, ok := kinds[arg]
	if !ok {
		x.t.Errorf("%s(%s): add the type of the argument to kinds", f.Name, shown)
		return
	}
	e := edge{[]*ast.FieldDefinition{f}, nodeOf(schema(), schema().Types[f.Type.Name()])}
	row := x.report.row(f.Name + "(" + shown + ")")
	for _, c := range x.columns {
		cells := ""
		for _, scope := range matrixScopes {
			owner, _, _ := x.at(c, scope)
			k := x.kits[owner.ID]
			got := x.ask(c, f.Name, "query($id: ID) {"+e.query(args)+"}", managertest.Vars{"id": k[kind]}, nil)
			one, ok := k[e.leaf.Name+"+"+arg] // of that object, if there are several
			if !ok {
				one = k[e.leaf.Name]
			}
			if isNode(e.leaf) && len(got.leaves[""]) > 0 && !slices.Contains(got.leaves[""], one.String()) {
				got.leaves = nil // the list does not contain objects of that object
			}
			cells += got.verdict("")
		}
		row.add(cells)
	}
}
