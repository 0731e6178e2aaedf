package client

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// TestOperationsMatchSchema holds every document against the published schema,
// and the Go shape it is decoded into against the document.
func TestOperationsMatchSchema(t *testing.T) {
	schema := publishedSchema(t)
	if len(operations) < 30 {
		t.Fatalf("only %d operations are defined", len(operations))
	}
	names := map[string]bool{}
	for _, op := range operations {
		doc, err := gqlparser.LoadQueryWithRules(schema, op.text, rules.NewDefaultRules())
		if err != nil {
			t.Errorf("%v in\n%s", err, op.text)
			continue
		}
		name := doc.Operations[0].Name
		if names[name] {
			t.Errorf("two operations are called %s", name)
		}
		names[name] = true
		t.Run(name, func(t *testing.T) { sameShape(t, name, doc.Operations[0].SelectionSet, op.out) })
	}
}

// Operations that read a field only administrators may read. Every other operation is for
// each user: a field that is not open to them would refuse the whole of it.
var forAdministrators = strings.Fields(`
	Cluster IdentityProviders IdleDryRun Invitations OccupancyAudit Retention
	VolumeDetails VolumeGrants VolumeOrphans
`)

func TestOperationsAreOpenToUsers(t *testing.T) {
	schema := publishedSchema(t)
	var found []string
	for _, op := range operations {
		doc, err := gqlparser.LoadQueryWithRules(schema, op.text, rules.NewDefaultRules())
		if err != nil {
			continue // TestOperationsMatchSchema says so
		}
		if o := doc.Operations[0]; o.Operation != ast.Mutation && restricted(schema, o.SelectionSet) {
			found = append(found, o.Name)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, forAdministrators) {
		t.Errorf("only administrators can run:\n%s\nin the list are:\n%s", strings.Join(found, "\n"), strings.Join(forAdministrators, "\n"))
	}
}

// restricted reports whether a selection has a field that is not open to all users.
func restricted(s *ast.Schema, set ast.SelectionSet) bool {
	return slices.ContainsFunc(set, func(sel ast.Selection) bool {
		switch sel := sel.(type) {
		case *ast.Field:
			return admins(sel.Definition.Directives) || restricted(s, sel.SelectionSet)
		case *ast.InlineFragment:
			return restricted(s, sel.SelectionSet)
		case *ast.FragmentSpread:
			return restricted(s, sel.Definition.SelectionSet)
		}
		return false
	})
}

func admins(list ast.DirectiveList) bool {
	allow := list.ForName("allow")
	return allow != nil && strings.HasSuffix(allow.Arguments.ForName("to").Value.Raw, "ADMIN")
}

// TestAllMutationsAreOffered holds the package against what the API can do.
func TestAllMutationsAreOffered(t *testing.T) {
	schema := publishedSchema(t)
	used := map[string]bool{}
	for _, op := range operations {
		doc, err := gqlparser.LoadQueryWithRules(schema, op.text, rules.NewDefaultRules())
		if err != nil {
			continue // TestOperationsMatchSchema says so
		}
		for _, s := range doc.Operations[0].SelectionSet {
			if f, ok := s.(*ast.Field); ok {
				used[f.Name] = true
			}
		}
	}
	for _, f := range schema.Mutation.Fields {
		if !used[f.Name] {
			t.Errorf("no operation uses %s", f.Name)
		}
	}
}

func publishedSchema(t *testing.T) *ast.Schema {
	t.Helper()
	text, err := os.ReadFile("../../schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// sameShape checks that selection and struct name the same fields, that what
// may be null can be nil, and that lists are slices.
func sameShape(t *testing.T, at string, set ast.SelectionSet, typ reflect.Type) {
	t.Helper()
	selected := map[string]*ast.Field{}
	flatten(set, selected)
	fields := map[string]reflect.Type{}
	jsonFields(typ, fields)
	for name, f := range selected {
		ft, ok := fields[name]
		if !ok {
			t.Errorf("%s.%s is asked for, but %s has no place for it", at, name, typ)
			continue
		}
		checkField(t, at+"."+name, f, ft)
	}
	for name := range fields {
		if selected[name] == nil {
			t.Errorf("%s.%s is in %s, but never asked for", at, name, typ)
		}
	}
}

func checkField(t *testing.T, at string, f *ast.Field, typ reflect.Type) {
	t.Helper()
	want := f.Definition.Type
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
	default:
		if !want.NonNull {
			t.Errorf("%s may be null, %s cannot", at, typ)
		}
	}
	for want.Elem != nil {
		if typ.Kind() != reflect.Slice {
			t.Fatalf("%s is a list, %s is not", at, typ)
		}
		want, typ = want.Elem, typ.Elem()
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if len(f.SelectionSet) > 0 {
		sameShape(t, at, f.SelectionSet, typ)
		return
	}
	scalars := map[string][]string{
		"ID": {"string"}, "String": {"string"}, "Int": {"int"}, "Int64": {"int64"}, "Float": {"float64"},
		"Boolean": {"bool"}, "Time": {"time.Time"}, "Slots": {"resource.Slots"},
		"StringMap": {"map[string]string"}, "Cursor": {"string"},
	}
	if ok := scalars[want.NamedType]; ok != nil && ok[0] != typ.String() {
		t.Errorf("%s is a %s, kept in %s", at, want.NamedType, typ)
	}
}

func flatten(set ast.SelectionSet, into map[string]*ast.Field) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			into[s.Alias] = s
		case *ast.InlineFragment:
			flatten(s.SelectionSet, into)
		case *ast.FragmentSpread:
			flatten(s.Definition.SelectionSet, into)
		}
	}
}

func jsonFields(typ reflect.Type, into map[string]reflect.Type) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			jsonFields(f.Type, into)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[name] = f.Type
	}
}

// TestInputsMatchSchema holds input structs against the input types they are
// sent as.
func TestInputsMatchSchema(t *testing.T) {
	schema := publishedSchema(t)
	for name, in := range map[string]any{
		"CreateSessionInput": CreateSessionInput{}, "MountInput": MountInput{}, "UploadFileInput": UploadFile{},
		"CreateUserInput": CreateUserInput{}, "UpdateUserInput": UpdateUserInput{}, "ImportUsersInput": ImportUsersInput{},
		"PurgeUserInput": PurgeUserInput{}, "UpdateProfileInput": UpdateProfileInput{},
		"CreateDomainInput": CreateDomainInput{}, "UpdateDomainInput": UpdateDomainInput{},
		"CreateProjectInput": CreateProjectInput{}, "UpdateProjectInput": UpdateProjectInput{},
		"CreateRegistryInput": CreateRegistryInput{}, "UpdateRegistryInput": UpdateRegistryInput{}, "CreateAccessTokenInput": CreateAccessTokenInput{},
		"CreateKeypairInput": CreateKeypairInput{}, "UpdateKeypairInput": UpdateKeypairInput{},
		"UpdateResourcePolicyInput": PolicyInput{}, "AttachResourcePolicyInput": AttachInput{},
		"CreateResourceGroupInput": CreateGroupInput{}, "UpdateResourceGroupInput": UpdateGroupInput{},
		"CreateIdleCheckerInput": CreateIdleCheckerInput{}, "UpdateIdleCheckerInput": UpdateIdleCheckerInput{}, "IdleThresholdInput": IdleThreshold{},
		"BindIdleCheckerInput": BindIdleInput{}, "UnbindIdleCheckerInput": BindIdleInput{},
		"SetShareWeightInput":     ShareInput{},
		"GrantResourceGroupInput": GroupHolder{}, "RevokeResourceGroupInput": GroupHolder{},
		"CreateResourcePresetInput": CreatePresetInput{}, "UpdateResourcePresetInput": UpdatePresetInput{},
		"CreateRoleInput": CreateRoleInput{}, "UpdateRoleInput": UpdateRoleInput{}, "GrantRoleInput": GrantRoleInput{},
		"RolePermissionInput": RolePermission{}, "SetVolumeGrantInput": VolumeGrantInput{},
		"CreateIdentityProviderInput": CreateProviderInput{}, "UpdateIdentityProviderInput": UpdateProviderInput{},
		"CreateInvitationInput": CreateInvitationInput{},
	} {
		fields := map[string]reflect.Type{}
		jsonFields(reflect.TypeOf(in), fields)
		def := schema.Types[name]
		for field := range fields {
			if def.Fields.ForName(field) == nil {
				t.Errorf("%s has no field %s", name, field)
			}
		}
		for _, f := range def.Fields {
			if f.Type.NonNull && f.DefaultValue == nil && fields[f.Name] == nil {
				t.Errorf("%s.%s is required, %T cannot carry it", name, f.Name, in)
			}
		}
	}
}
