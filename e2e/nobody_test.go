package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/client"
)

// Every field of the API requires an authenticated caller, except for the public ones.
func TestNobodyGetsNothing(t *testing.T) {
	text, err := os.ReadFile("../schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := client.New(platform.URL, "", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	u := platform.User(t)
	fields := 0
	for kind, root := range map[string]*ast.Definition{"query": schema.Query, "mutation": schema.Mutation, "subscription": schema.Subscription} {
		for _, f := range root.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			fields++
			query := kind + " { " + f.Name + arguments(schema, f.Arguments) + selection(schema, f.Type) + " }"
			err := ask(t, nobody, kind, query)
			if open := f.Name == "server" || f.Name == "loginProviders" || f.Name == "signUpOffer"; open != (err == nil) || !open && !errdefs.IsUnauthorized(err) {
				t.Errorf("%s without a login: %v", query, err)
			}
			if f.Directives.ForName("allow").Arguments.ForName("to").Value.Raw == "SUPERADMIN" {
				if err := ask(t, u.Client, kind, query); !errdefs.IsPermissionDenied(err) {
					t.Errorf("%s as a user: %v", query, err)
				}
			}
		}
	}
	if fields < 50 {
		t.Errorf("only %d fields were tried", fields)
	}
	if err := ask(t, nobody, "query", `{ __schema { types { name } } }`); !errdefs.IsUnauthorized(err) {
		t.Errorf("the schema without a login: %v", err)
	}
	id := "00000000-0000-7000-8000-000000000000"
	for _, path := range []string{"/auth/session", "/sessions/" + id + "/terminal", "/sessions/" + id + "/ports/80", "/sessions/" + id + "/log", "/storage/download"} {
		if resp, body := exchange(t, http.DefaultClient, "GET", platform.URL+path, ""); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s without a login: %s %s", path, resp.Status, body)
		}
	}
}

func ask(t *testing.T, c *client.Client, kind, query string) error {
	t.Helper()
	if kind == "subscription" {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		return c.Subscribe(ctx, client.Request{Query: query}, func(data json.RawMessage) error { return fmt.Errorf("got %s", data) })
	}
	resp, err := c.Raw(t.Context(), client.Request{Query: query})
	if err != nil {
		return err
	}
	return resp.Err()
}

// arguments returns the required arguments, with some value.
func arguments(schema *ast.Schema, list ast.ArgumentDefinitionList) string {
	var out []string
	for _, a := range list {
		if a.Type.NonNull && a.DefaultValue == nil {
			out = append(out, a.Name+": "+literal(schema, a.Type))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func literal(schema *ast.Schema, t *ast.Type) string {
	if t.Elem != nil {
		return "[" + literal(schema, t.Elem) + "]"
	}
	switch d := schema.Types[t.NamedType]; {
	case d.Kind == ast.Enum:
		return d.EnumValues[0].Name
	case d.Kind == ast.InputObject:
		var out []string
		for _, f := range d.Fields {
			if f.Type.NonNull && f.DefaultValue == nil {
				out = append(out, f.Name+": "+literal(schema, f.Type))
			}
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	switch t.NamedType {
	case "ID":
		return `"00000000-0000-7000-8000-000000000000"`
	case "Int", "Int64", "Float":
		return "1"
	case "Boolean":
		return "true"
	case "Slots":
		return `{cpu: "1"}`
	}
	return `"x"`
}

func selection(schema *ast.Schema, t *ast.Type) string {
	if d := schema.Types[t.Name()]; d.Kind == ast.Object || d.Kind == ast.Interface {
		return " { __typename }"
	}
	return ""
}
