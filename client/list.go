package client

import (
	"fmt"
	"time"

	"github.com/containerd/errdefs"
)

// Where is the filter of a list, in the form of the schema's input type for it: Where{"statusIn":
// []string{"RUNNING"}}.
type Where map[string]any

// put filters by a value that is not empty.
func put[S ~string](where Where, name string, value S) {
	if value != "" {
		where[name] = value
	}
}

func nameIs(name string) Where {
	where := Where{}
	put(where, "name", name)
	return where
}

// between is a filter on the field at; zero times leave a side open.
func between(from, to time.Time) Where {
	where := Where{}
	if !from.IsZero() {
		where["atGTE"] = from.UTC()
	}
	if !to.IsZero() {
		where["atLT"] = to.UTC()
	}
	return where
}

// pageSize is how many entries of a list are read at once; the server allows at least as many.
const pageSize = 100

// list is a page of a list whose entries are in edges.
type list[E any] interface {
	GetEdges() []E
	GetPageInfo() pageInfo
}

type edge[T any] interface {
	comparable
	GetNode() *T
}

// collect reads a list page by page, at most limit entries; 0 means all.
func collect[T any, E edge[T], L list[E]](limit int, read func(first *int, after string) (L, error)) ([]T, error) {
	all := []T{}
	var none E
	for after := ""; ; {
		first := pageSize
		if limit > 0 {
			first = min(first, limit-len(all))
		}
		page, err := read(&first, after)
		if err != nil {
			return nil, err
		}
		for _, e := range page.GetEdges() {
			if e == none || e.GetNode() == nil {
				continue
			}
			all = append(all, *e.GetNode())
		}
		info := page.GetPageInfo()
		if !info.HasNextPage || info.EndCursor == nil || limit > 0 && len(all) >= limit {
			return all, nil
		}
		after = *info.EndCursor
	}
}

// Ref names another object.
type Ref struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Title is the object's name, or a dash if the viewer cannot see the object.
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

// Title is the user's e-mail, or a dash if the viewer cannot see the user.
func (u *UserRef) Title() string {
	if u == nil {
		return "-"
	}
	return u.Email
}

func notFound(noun, ref string) error {
	return fmt.Errorf("there is no %s %q: %w", noun, ref, errdefs.ErrNotFound)
}
