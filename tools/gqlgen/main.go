// Command gqlgen generates graph/exec as `go tool gqlgen generate` does, with cheaper code
// for fields that are in memory: see graph/answer. It replaces parts of gqlgen's templates,
// and fails when a version of gqlgen has other templates.
//
//	go run ./tools/gqlgen
package main

import (
	_ "embed"
	"fmt"
	"go/types"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing/fstest"
	"text/template"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
)

func main() {
	if err := run(); err != nil {
		log.Fatalf("gqlgen: %v", err)
	}
}

func run() error {
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		return err
	}
	var p plan
	if err := api.Generate(cfg, api.AddPlugin(&p)); err != nil {
		return err
	}
	changed, err := changedTemplates()
	if err != nil {
		return err
	}
	return templates.Render(templates.Options{
		PackageName: cfg.Exec.Package, Filename: cfg.Exec.Filename, Data: p.data,
		RegionTags: true, GeneratedHeader: true, Packages: cfg.Packages,
		TemplateFS: changed, PruneOptions: cfg.GetPruneOptions(),
		Funcs: template.FuncMap{"leaf": leaf, "held": held, "edge": edge, "waits": waits, "word": word},
	})
}

// plan is a plugin that keeps the data for the templates.
type plan struct{ data *codegen.Data }

// Name implements plugin.Plugin.
func (*plan) Name() string { return "plan" }

// GenerateCode implements plugin.CodeGenerator.
func (p *plan) GenerateCode(data *codegen.Data) error {
	p.data = data
	return nil
}

// single are the templates of files that exist once.
var single = []string{
	"api!.gotpl", "internal!.gotpl", "args.gotpl", "field.gotpl", "input.gotpl", "interface.gotpl",
	"object.gotpl", "type.gotpl", "generated!.gotpl", "directives_.gotpl",
}

//go:embed object.gotpl
var object string

//go:embed field.gotpl
var field string

//go:embed waiting.gotpl
var waiting string

// readWord and writeWord convert enum values, for types of which word is true.
const (
	readWord = `
					res, err := answer.ReadWord[{{ if $type.IsNilable }}{{ $type.Elem.GO | ref }}{{ else }}{{ $type.GO | ref }}{{ end }}](v)
					return {{ if $type.IsNilable }}&{{ end }}res, graphql.ErrorOnPath(ctx, err)
				`
	writeWord = `
					_ = sel
					return answer.Word({{ if $type.IsNilable }}*{{ end }}v)
				`
)

// changes are replacements in gqlgen's templates. Each old text must occur exactly once.
var changes = []struct{ file, old, new string }{
	{"generated!.gotpl", `{{ reserveImport "math"  }}`, "{{ reserveImport \"math\"  }}\n{{ reserveImport \"github.com/berthhq/berth/graph/answer\" }}"},
	{"generated!.gotpl", `{{ reserveImport "github.com/99designs/gqlgen/graphql/introspection" }}`, "{{ reserveImport \"github.com/99designs/gqlgen/graphql/introspection\" }}\n" + waiting},
	{"object.gotpl", "{{- else }}\n\nfunc {{$.FuncReceiver}}_{{$object.Name}}(ctx", "{{- else if not $object.Root }}\n" + object + "\n{{- else }}\n\nfunc {{$.FuncReceiver}}_{{$object.Name}}(ctx"},
	{"field.gotpl", "{{- else}}\n\t\treturn graphql.{{ $field.ResolveFieldFunc }}(", field + "\n\t\treturn graphql.{{ $field.ResolveFieldFunc }}("},
	{"type.gotpl", "graphql.MarshalSliceConcurrently(ctx, len(v), {{ $.Config.Exec.WorkerLimit }}, {{ $.Config.OmitPanicHandler }}, func", "answer.List(ctx, len(v), sel, waiting, func"},
	{"type.gotpl", "{{- if $type.Unmarshaler }}\n\t\t\t\t\t{{- if $type.HasEnumValues", "{{- if word $type }}\n" + readWord + "{{- else if $type.Unmarshaler }}\n\t\t\t\t\t{{- if $type.HasEnumValues"},
	{"type.gotpl", "{{- if $type.IsMarshaler }}\n\t\t\t\t\t{{- if $type.IsContext }}\n\t\t\t\t\t\treturn", "{{- if word $type }}\n" + writeWord + "{{- else if $type.IsMarshaler }}\n\t\t\t\t\t{{- if $type.IsContext }}\n\t\t\t\t\t\treturn"},
	{"internal!.gotpl", "var buf bytes.Buffer\n\t\t\tdata.MarshalGQL(&buf)\n\t\t\tresponse.Data = buf.Bytes()", "response.Data = answer.Text(data)"},
	{"internal!.gotpl", "inputUnmarshalMap := graphql.BuildUnmarshalerMap(", "inputs := func() []any { return []any{"},
	{"internal!.gotpl", "{{- end }}\n\t\t{{- end }}\n\t)\n\tfirst := true", "{{- end }}\n\t\t{{- end }}\n\t}}\n\tfirst := true"},
}

// changedTemplates returns gqlgen's templates with the changes.
func changedTemplates() (fstest.MapFS, error) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/99designs/gqlgen/codegen").Output()
	if err != nil {
		return nil, fmt.Errorf("find gqlgen's templates: %w", err)
	}
	files := fstest.MapFS{}
	for _, name := range single {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), name))
		if err != nil {
			return nil, err
		}
		files[name] = &fstest.MapFile{Data: text, Mode: 0o444}
	}
	for _, c := range changes {
		text := string(files[c.file].Data)
		if n := strings.Count(text, c.old); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, not once: gqlgen has changed", c.file, c.old, n)
		}
		files[c.file].Data = []byte(strings.Replace(text, c.old, c.new, 1))
	}
	inputs := string(files["internal!.gotpl"].Data)
	files["internal!.gotpl"].Data = []byte(strings.ReplaceAll(inputs,
		"graphql.WithUnmarshalerMap(ctx, inputUnmarshalMap)", "answer.WithInputs(ctx, opCtx.Operation, inputs)"))
	return files, nil
}

// memory reports whether a field is read from its object and cannot fail.
func memory(f *codegen.Field) bool {
	plain := !f.IsResolver && !f.Object.Root && !f.Object.Stream && len(f.Args) == 0 && !f.HasDirectives() && !f.IsBatch() && !f.HasHaser && !f.TypeReference.IsRoot
	method := f.IsMethod() && f.NoErr && !f.VOkFunc && !f.MethodHasContext
	return plain && (f.IsVariable() || method)
}

// leaf reports whether a field is read from memory and has no fields of its own.
func leaf(f *codegen.Field) bool {
	return memory(f) && f.TypeReference.Definition.IsLeafType() && !contextual(f.TypeReference)
}

// contextual reports whether a value is written with the context of its field.
func contextual(t *config.TypeReference) bool {
	return t.IsContext || t.Elem() != nil && contextual(t.Elem())
}

// held reports whether a field is an object or list of objects in memory.
func held(f *codegen.Field) bool { return memory(f) && !f.TypeReference.Definition.IsLeafType() }

// edge reports whether a field is an edge of an entity. CollectFields loads it with the
// entity; otherwise the read sends a statement.
func edge(f *codegen.Field) bool {
	return onEntity(f) && len(f.Args) == 0 && !f.NoErr && !f.VOkFunc && !f.HasDirectives()
}

func onEntity(f *codegen.Field) bool {
	if f.IsResolver || !f.IsMethod() || !f.MethodHasContext || f.Object.Root {
		return false
	}
	t := f.Object.Type
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "github.com/berthhq/berth/ent"
}

// waits reports whether a field can wait for a loader, so that the elements of a list
// have to run concurrently.
func waits(f *codegen.Field) bool {
	return !f.Object.Root && f.IsConcurrent() && !onEntity(f)
}
