package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"

	graphql "github.com/vektah/gqlparser/v2/ast"
	"golang.org/x/tools/imports"
)

// tidy rewrites what genqlient generated:
//   - references, which are objects of id and name or id and email, become Ref and UserRef;
//   - getters are removed, except those for pages of lists;
//   - optional values of inputs are not pointers if their zero value has no meaning;
//   - in JSON, the fields of an embedded struct come first, as in the struct itself;
//   - subscriptions keep their types, but lose the functions for WebSocket;
//   - initialisms are upper case.
func tidy(text []byte, schema *graphql.Schema, doc *document) ([]byte, error) {
	t := &tidier{text: text, schema: schema, doc: doc, fset: token.NewFileSet(), renamed: map[string]string{}}
	file, err := parser.ParseFile(t.fset, "", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			t.function(d)
		case *ast.GenDecl:
			if d.Tok == token.TYPE {
				t.types(d)
			}
		}
	}
	t.embedded(file)
	ast.Inspect(file, t.maps)
	out := t.names(t.apply())
	return imports.Process("generated.go", t.documents(out), nil)
}

type tidier struct {
	text    []byte
	schema  *graphql.Schema
	doc     *document
	fset    *token.FileSet
	edits   []edit
	renamed map[string]string // replacement of each replaced type
}

// edit replaces a part of the text.
type edit struct {
	from, to int
	by       string
}

func (t *tidier) edit(from, to token.Pos, by string) {
	t.edits = append(t.edits, edit{t.fset.Position(from).Offset, t.fset.Position(to).Offset, by})
}

// remove removes a declaration and its comment.
func (t *tidier) remove(d ast.Decl, comment *ast.CommentGroup) {
	from := d.Pos()
	if comment != nil {
		from = comment.Pos()
	}
	t.edit(from, d.End(), "")
}

// apply returns the text after the edits. An edit within a removed declaration is dropped.
func (t *tidier) apply() []byte {
	slices.SortStableFunc(t.edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, e := range t.edits {
		if e.from < at {
			continue
		}
		out.Write(t.text[at:e.from])
		out.WriteString(e.by)
		at = e.to
	}
	out.Write(t.text[at:])
	return out.Bytes()
}

func (t *tidier) function(d *ast.FuncDecl) {
	if d.Recv != nil {
		if owner := receiver(d); strings.HasPrefix(d.Name.Name, "Get") && !pages(owner, d.Name.Name) {
			t.remove(d, d.Doc)
		}
		return
	}
	name := strings.TrimSuffix(d.Name.Name, "ForwardData")
	op := t.doc.operations[name]
	if op == nil {
		return
	}
	if op.Operation == graphql.Subscription {
		t.remove(d, d.Doc)
		return
	}
	for _, p := range d.Type.Params.List {
		if v := op.VariableDefinitions.ForName(p.Names[0].Name); v != nil {
			if plain, _ := t.plain("", "", v.Type); plain {
				t.unstar(p.Type)
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return typ.(*ast.Ident).Name
}

// pages reports whether a getter is needed to read lists.
func pages(owner, name string) bool {
	return strings.HasSuffix(owner, "Edge") && name == "GetNode" ||
		strings.HasSuffix(owner, "Connection") && (name == "GetEdges" || name == "GetPageInfo")
}

func (t *tidier) types(d *ast.GenDecl) {
	spec := d.Specs[0].(*ast.TypeSpec)
	name := spec.Name.Name
	if strings.HasSuffix(name, "WsResponse") {
		t.remove(d, d.Doc)
		return
	}
	if text, ok := t.doc.comments[name]; ok && d.Doc != nil {
		t.edit(d.Doc.Pos(), d.Doc.End(), strings.TrimSuffix(text, "\n"))
	}
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	if def := t.schema.Types[name]; def != nil && def.Kind == graphql.InputObject {
		t.input(body, name, func(field string) (*graphql.Type, string) {
			f := def.Fields.ForName(field)
			return f.Type, f.Description
		})
	} else if by := reference(body); by != "" {
		t.renamed[name] = by
		t.remove(d, d.Doc)
	} else if op := t.doc.operations[strings.TrimSuffix(strings.TrimPrefix(name, "__"), "Input")]; op != nil && strings.HasPrefix(name, "__") {
		t.input(body, "", func(field string) (*graphql.Type, string) { return op.VariableDefinitions.ForName(field).Type, "" })
	}
}

// reference returns the type for references with the fields of a struct, or "".
func reference(body *ast.StructType) string {
	if len(body.Fields.List) != 2 {
		return ""
	}
	names := ""
	for _, f := range body.Fields.List {
		if id, ok := f.Type.(*ast.Ident); !ok || id.Name != "string" || len(f.Names) != 1 {
			return ""
		}
		names += f.Names[0].Name
	}
	return map[string]string{"IdName": "Ref", "IdEmail": "UserRef"}[names]
}

// input changes optional fields of an input from pointers to values where possible, and omits them
// from the request when they are not set.
func (t *tidier) input(body *ast.StructType, name string, definition func(field string) (typ *graphql.Type, doc string)) {
	for _, f := range body.Fields.List {
		field := regexp.MustCompile(`json:"(\w+)`).FindStringSubmatch(f.Tag.Value)[1]
		typ, doc := definition(field)
		plain, tag := t.plain(name, doc, typ)
		if plain {
			t.unstar(f.Type)
		}
		if tag != "" {
			t.edit(f.Tag.Pos(), f.Tag.End(), fmt.Sprintf("`json:\"%s,%s\"`", field, tag))
		}
	}
}

// plain reports whether an optional value of an input is not a pointer, and returns the option of
// its tag. In an update, "" and false replace the old value, so they must be sent, and so must "" where the description says what
// it means.
func (t *tidier) plain(input, doc string, typ *graphql.Type) (bool, string) {
	update := strings.HasPrefix(input, "Update")
	switch {
	case typ.NonNull:
		return false, ""
	case typ.Elem != nil:
		return true, "omitzero"
	}
	def := t.schema.Types[typ.Name()]
	switch {
	case def.Name == "Slots" || def.Name == "StringMap" || strings.HasSuffix(def.Name, "WhereInput"):
		return true, "omitzero"
	case def.Kind == graphql.Enum || def.Name == "ID" || def.Name == "Cursor":
		return true, "omitempty"
	case def.Name == "String":
		return !update && !strings.Contains(doc, "empty: "), "omitempty"
	case def.Name == "Boolean":
		return !update && !strings.Contains(strings.ReplaceAll(doc, ":", ""), "Default true"), "omitempty"
	}
	return false, "omitempty"
}

func (t *tidier) unstar(typ ast.Expr) {
	if star, ok := typ.(*ast.StarExpr); ok {
		t.edit(star.Pos(), star.X.Pos(), "")
	}
}

// maps replaces pointers to maps by maps, which can be nil themselves.
func (t *tidier) maps(n ast.Node) bool {
	star, ok := n.(*ast.StarExpr)
	if !ok {
		return true
	}
	id, named := star.X.(*ast.Ident)
	if _, isMap := star.X.(*ast.MapType); isMap || named && (id.Name == "Slots" || id.Name == "Where") {
		t.unstar(star)
	}
	return true
}

const premarshal = "__premarshal"

// embedded moves the fields that a type for JSON has from embedded structs before the others.
func (t *tidier) embedded(file *ast.File) {
	structs := map[string][]*ast.Field{}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			spec := g.Specs[0].(*ast.TypeSpec)
			if body, ok := spec.Type.(*ast.StructType); ok {
				structs[spec.Name.Name] = body.Fields.List
			}
		}
	}
	for name, fields := range structs {
		owner, ok := strings.CutPrefix(name, premarshal)
		if !ok {
			continue
		}
		own := slices.IndexFunc(structs[owner], func(f *ast.Field) bool { return len(f.Names) > 0 })
		own = len(structs[owner]) - own
		first, from, end := fields[0].Pos(), fields[own].Pos(), fields[len(fields)-1].End()
		// The text is moved as a whole, so an edit within it would be lost: see maps.
		t.edit(first, end, strings.ReplaceAll(t.source(from, end)+"\n"+t.source(first, from), "*Slots ", "Slots "))
	}
}

func (t *tidier) source(from, to token.Pos) string {
	return string(t.text[t.fset.Position(from).Offset:t.fset.Position(to).Offset])
}
