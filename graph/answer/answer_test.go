package answer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/graph/answer"
)

// fields are the selection of an object.
func fields(aliases ...string) []graphql.CollectedField {
	var out []graphql.CollectedField
	for _, a := range aliases {
		out = append(out, graphql.CollectedField{Field: &ast.Field{Name: a, Alias: a}})
	}
	return out
}

func response(t *testing.T) context.Context {
	recovered := func(_ context.Context, panicked any) error { return errors.New("recovered") }
	return graphql.WithResponseContext(t.Context(), graphql.DefaultErrorPresenter, recovered)
}

func TestObject(t *testing.T) {
	one := func(context.Context) graphql.Marshaler { return graphql.MarshalInt(1) }
	null := func(context.Context) graphql.Marshaler { return graphql.Null }
	fails := func(context.Context) graphql.Marshaler { panic("here") }
	for _, c := range []struct {
		name   string
		fill   func(*answer.Object)
		want   string
		errors int
	}{
		{"values in their order", func(o *answer.Object) {
			o.LaterNonNull(0, one)
			o.Later(1, one)
			o.SetNonNull(2, graphql.MarshalString("c"))
		}, `{"a":1,"b":1,"c":"c"}`, 0},
		{"null in a nullable field", func(o *answer.Object) {
			o.Set(0, graphql.Null)
			o.Later(1, null)
			o.Set(2, graphql.True)
		}, `{"a":null,"b":null,"c":true}`, 0},
		{"null at once", func(o *answer.Object) {
			o.SetNonNull(0, graphql.Null)
			o.Later(1, one)
			o.Set(2, graphql.True)
		}, `null`, 0},
		{"null later", func(o *answer.Object) {
			o.Set(0, graphql.True)
			o.Later(1, one)
			o.LaterNonNull(2, null)
		}, `null`, 0},
		{"a panic", func(o *answer.Object) {
			o.Set(0, graphql.True)
			o.Later(1, fails)
			o.Later(2, fails)
		}, `{"a":true,"b":null,"c":null}`, 2},
		{"a panic that returns null", func(o *answer.Object) {
			o.Set(0, graphql.True)
			o.Later(1, one)
			o.LaterNonNull(2, fails)
		}, `null`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := response(t)
			o := answer.NewObject(fields("a", "b", "c"))
			c.fill(o)
			if got := string(answer.Text(o.Done(ctx))); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if got := graphql.GetErrors(ctx); len(got) != c.errors {
				t.Errorf("%d errors %v, want %d", len(got), got, c.errors)
			}
		})
	}
}

// TestObjectHasANameOnce selects the same field through an interface and through an object type.
func TestObjectHasANameOnce(t *testing.T) {
	o := answer.NewObject(fields("a", "b", "a"))
	for i := range 3 {
		o.Set(i, graphql.MarshalInt(i))
	}
	if got := string(answer.Text(o.Done(response(t)))); got != `{"a":0,"b":1}` {
		t.Error(got)
	}
	var elsewhere strings.Builder
	o.MarshalGQL(&elsewhere)
	if got := elsewhere.String(); got != `{"a":0,"b":1}` {
		t.Error(got)
	}
}

// TestListTellsPlaces resolves lists whose elements run one after the other, and concurrently.
func TestListTellsPlaces(t *testing.T) {
	slow := ast.SelectionSet{&ast.InlineFragment{SelectionSet: ast.SelectionSet{&ast.Field{Name: "slow", ObjectDefinition: &ast.Definition{Name: "T"}}}}}
	fast := ast.SelectionSet{&ast.Field{Name: "fast", ObjectDefinition: &ast.Definition{Name: "T"}}}
	waiting := answer.Waiting{{Object: "T", Field: "slow"}: true}
	for name, sel := range map[string]ast.SelectionSet{"in turn": fast, "together": slow} {
		t.Run(name, func(t *testing.T) {
			ctx := graphql.WithFieldContext(response(t), &graphql.FieldContext{Field: graphql.CollectedField{Field: &ast.Field{Alias: "list"}}})
			write := func(ctx context.Context, i int) graphql.Marshaler {
				if i == 1 {
					graphql.AddErrorf(ctx, "wrong")
				}
				return graphql.MarshalInt(i)
			}
			if got := string(answer.Text(answer.List(ctx, 3, sel, waiting, write))); got != `[0,1,2]` {
				t.Error(got)
			}
			if errs := graphql.GetErrors(ctx); len(errs) != 1 || errs[0].Path.String() != "list[1]" {
				t.Errorf("errors %v, want one at list[1]", errs)
			}
			failing := func(ctx context.Context, i int) graphql.Marshaler {
				if i == 1 {
					panic("here")
				}
				return write(ctx, i)
			}
			if got := answer.List(ctx, 3, sel, waiting, failing); got != nil {
				t.Errorf("a list with a panic is %v", got)
			}
			if got := string(answer.Text(answer.List(ctx, 0, sel, waiting, write))); got != `[]` {
				t.Error(got)
			}
		})
	}
}

// TestWaitingElementsRunTogether has elements that all wait for the last one, as they do for a
// loader that batches their reads.
func TestWaitingElementsRunTogether(t *testing.T) {
	sel := ast.SelectionSet{&ast.FragmentSpread{Definition: &ast.FragmentDefinition{SelectionSet: ast.SelectionSet{
		&ast.Field{Name: "inner", ObjectDefinition: &ast.Definition{Name: "T"}, SelectionSet: ast.SelectionSet{
			&ast.Field{Name: "slow", ObjectDefinition: &ast.Definition{Name: "U"}},
		}},
	}}}}
	var all sync.WaitGroup
	all.Add(5)
	got := answer.List(response(t), 5, sel, answer.Waiting{{Object: "U", Field: "slow"}: true}, func(_ context.Context, i int) graphql.Marshaler {
		all.Done()
		all.Wait()
		return graphql.MarshalInt(i)
	})
	if slices.Contains(got, nil) || len(got) != 5 {
		t.Error(got)
	}
}
