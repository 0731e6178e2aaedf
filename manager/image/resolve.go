package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// imageField is the input's field that every caller of Resolve has.
const imageField = "image"

// Resolve returns the registered image of a reference, and an error if its registry requires a
// signature that it lacks. A name without a host, such as
// python:3.11, means the only registry that has it, or else the viewer's own image of this name. Of several architectures it chooses amd64,
// then the first by name.
func (s *Service) Resolve(ctx context.Context, ref string) (*ent.Image, error) {
	r, err := parse(imageField, strings.TrimSpace(ref))
	if err != nil {
		return nil, err
	}
	q := s.client.Image.Query().Where(Open(ctx)).Order(entimage.ByReference(), entimage.ByArchitecture())
	v := viewer.From(ctx)
	switch {
	case r.host == "" && v != nil && !strings.Contains(r.path, "/"):
		q.Where(entimage.Or(entimage.Name(r.name()), OwnNamed(v, r.name())))
	case r.host == "":
		q.Where(entimage.Name(r.name()))
	default:
		q.Where(entimage.Reference(r.full()))
	}
	all, err := q.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up image: %w", err)
	}
	alive := slices.DeleteFunc(slices.Clone(all), func(i *ent.Image) bool { return i.Status != entimage.StatusAlive })
	if len(alive) == 0 {
		return nil, s.unknown(ctx, r, ref, len(all) > 0)
	}
	// An own image never replaces one that has the whole name.
	if slices.ContainsFunc(alive, func(i *ent.Image) bool { return i.Name == r.name() }) {
		alive = slices.DeleteFunc(alive, func(i *ent.Image) bool { return i.Name != r.name() })
	}
	if first, last := alive[0], alive[len(alive)-1]; first.Reference != last.Reference {
		return nil, problem.Invalid(imageField, "is ambiguous, name the registry: %s or %s", first.Reference, last.Reference)
	}
	if r.digest != "" {
		alive = slices.DeleteFunc(alive, func(i *ent.Image) bool { return i.Digest != r.digest })
		if len(alive) == 0 {
			return nil, problem.Invalid(imageField, "%s now has another digest", r.name())
		}
	}
	best := preferred(alive)
	if err := s.checkSigned(ctx, best); err != nil {
		return nil, err
	}
	return best, nil
}

// OwnNamed matches the viewer's own image with a short name, such as env:1.
func OwnNamed(v *viewer.Viewer, name string) predicate.Image {
	return entimage.And(entimage.OwnerID(v.User), entimage.NameHasPrefix(ownPath), entimage.NameHasSuffix("/"+name))
}

// preferred chooses among the architectures of one image.
func preferred(rows []*ent.Image) *ent.Image {
	for _, i := range rows {
		if i.Architecture == "amd64" {
			return i
		}
	}
	return rows[0]
}

// Open matches the images that the viewer can use: those of registries that are open to the
// viewer's domain (all, unless the domain is restricted to some), and those that a custom role
// makes visible. Users who can see everything can use all. Other images are still visible
// through sessions that were started from them. A registry that names projects is open to their
// members only.
func Open(ctx context.Context) predicate.Image {
	v := viewer.From(ctx)
	if v == nil || v.SeesAll() || len(v.Granted(access.Read, access.Image, access.OnSystem)) > 0 {
		return func(*sql.Selector) {}
	}
	return entimage.Or(
		entimage.IDIn(v.Granted(access.Read, access.Image, access.OnObject)...),
		entimage.And(entimage.VisibilityEQ(entimage.VisibilityPublic), registered(v)),
		entimage.OwnerID(v.User),
		entimage.And(entimage.VisibilityEQ(entimage.VisibilityProject), entimage.ProjectIDIn(usable(v)...)),
	)
}

// Listed matches the images that the viewer can use, and for a domain admin those that users of the
// domain have made.
func Listed(ctx context.Context) predicate.Image {
	v := viewer.From(ctx)
	if v != nil && v.Role == viewer.RoleAdmin {
		return entimage.Or(Open(ctx), entimage.DomainID(v.Domain))
	}
	return Open(ctx)
}

// registered matches images of registries that are open to the viewer's domain and projects.
func registered(v *viewer.Viewer) predicate.Image {
	byDomain := entimage.Or(
		entimage.HasRegistryWith(registry.HasDomainsWith(domain.ID(v.Domain))),
		func(s *sql.Selector) {
			d := sql.Table("domains")
			s.Where(sql.NotExists(sql.Select(d.C("id")).From(d).
				Where(sql.And(sql.EQ(d.C("id"), v.Domain), sql.IsTrue(d.C("registries_restricted"))))))
		},
	)
	byProject := entimage.Or(
		entimage.Not(entimage.HasRegistryWith(registry.HasProjects())),
		entimage.HasRegistryWith(registry.HasProjectsWith(project.IDIn(v.Projects...))),
	)
	return entimage.And(byDomain, byProject)
}

// hints is the number of tags in an error.
const hints = 5

// unknown returns an error that suggests similar tags.
func (s *Service) unknown(ctx context.Context, r reference, asked string, gone bool) error {
	if gone {
		return problem.NotFound(fmt.Sprintf("image %q (gone from its registry)", asked)).WithField(imageField)
	}
	like := s.client.Image.Query().Where(Open(ctx), entimage.NameHasPrefix(r.path+":"), entimage.StatusEQ(entimage.StatusAlive))
	known, err := like.Order(entimage.ByName()).Limit(hints).Select(entimage.FieldName).Strings(ctx)
	if err != nil {
		return fmt.Errorf("look up similar images: %w", err)
	}
	what := fmt.Sprintf("image %q", asked)
	if known = slices.Compact(known); len(known) > 0 {
		what += fmt.Sprintf(" (there is %s)", strings.Join(known, ", "))
	}
	return problem.NotFound(what).WithField(imageField)
}
