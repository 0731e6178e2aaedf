package client

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
)

// operation is a GraphQL document whose data has the shape of Out.
type operation[Out any] struct{ text string }

// operations lists every document of the package with the shape it is decoded
// into; a test holds both against the published schema.
var operations []struct {
	text string
	out  reflect.Type
}

func define[Out any](text string, fragments ...string) operation[Out] {
	for _, f := range fragments {
		text += "\n" + f
	}
	operations = append(operations, struct {
		text string
		out  reflect.Type
	}{text, reflect.TypeFor[Out]()})
	return operation[Out]{text: text}
}

func (op operation[Out]) run(ctx context.Context, c *Client, vars map[string]any) (Out, error) {
	var out Out
	resp, err := c.Raw(ctx, Request{Query: op.text, Variables: vars})
	if err != nil {
		return out, err
	}
	if err := resp.Err(); err != nil {
		return out, err
	}
	return op.decode(resp.Data)
}

func (op operation[Out]) subscribe(ctx context.Context, c *Client, vars map[string]any, fn func(Out) error) error {
	return c.Subscribe(ctx, Request{Query: op.text, Variables: vars}, func(data json.RawMessage) error {
		out, err := op.decode(data)
		if err != nil {
			return err
		}
		return fn(out)
	})
}

func (op operation[Out]) decode(data json.RawMessage) (Out, error) {
	var out Out
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("read the server's answer: %w", err)
	}
	return out, nil
}

// payload is the answer to a mutation whose field goes by the alias payload.
type payload[P any] struct {
	Payload P `json:"payload"`
}

// change runs a mutation that takes one input.
func change[P any](ctx context.Context, c *Client, op operation[payload[P]], input any) (P, error) {
	out, err := op.run(ctx, c, vars{"input": input})
	return out.Payload, err
}

// idOf is what is left of a thing that is gone.
type idOf struct {
	ID string `json:"id"`
}

type vars = map[string]any

// pageSize is what lists are read in; the server takes at least this much.
const pageSize = 100

type connection[T any] struct {
	Edges []struct {
		Node *T `json:"node"`
	} `json:"edges"`
	PageInfo struct {
		HasNextPage bool    `json:"hasNextPage"`
		EndCursor   *string `json:"endCursor"`
	} `json:"pageInfo"`
}

// collect reads a list page by page, at most limit entries; 0 = all. It asks
// page with v, first and after.
func collect[T any](limit int, v vars, page func(vars) (connection[T], error)) ([]T, error) {
	all := []T{}
	var after *string
	for {
		first := pageSize
		if limit > 0 {
			first = min(first, limit-len(all))
		}
		v["first"], v["after"] = first, after
		got, err := page(v)
		if err != nil {
			return nil, err
		}
		for _, e := range got.Edges {
			if e.Node != nil {
				all = append(all, *e.Node)
			}
		}
		if !got.PageInfo.HasNextPage || got.PageInfo.EndCursor == nil || (limit > 0 && len(all) >= limit) {
			return all, nil
		}
		after = got.PageInfo.EndCursor
	}
}

// Ref names another object.
type Ref struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Title is the object's name, or a dash when it is out of sight.
func (r *Ref) Title() string {
	if r == nil {
		return "-"
	}
	return r.Name
}

// UserRef names a user.
type UserRef struct {
	ID    string `json:"id"`
	Email string `json:"email"`
}

// Title is the user's e-mail, or a dash when it is out of sight.
func (u *UserRef) Title() string {
	if u == nil {
		return "-"
	}
	return u.Email
}
