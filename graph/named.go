package graph

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/identityprovider"
	"github.com/berthhq/berth/ent/idlechecker"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/resourcepolicy"
	"github.com/berthhq/berth/ent/role"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/image"
)

// Queries by name return null for a name that does not exist, and for a name of an object that the
// viewer cannot see.

// finder is a query of ent for objects of a type.
type finder[T, Q any] interface {
	CollectFields(ctx context.Context, satisfies ...string) (Q, error)
	All(ctx context.Context) ([]*T, error)
}

// only returns the single object that a query finds, or nil. A query that finds several is an
// error that names the argument which chooses among them.
func only[T any, Q finder[T, Q]](ctx context.Context, q Q, kind, argument string) (*T, error) {
	q, err := q.CollectFields(ctx, kind, "Node")
	if err != nil {
		return nil, err
	}
	found, err := q.All(ctx)
	switch {
	case err != nil || len(found) == 0:
		return nil, err
	case len(found) > 1:
		return nil, problem.Precondition("several objects have this name: choose one by %s", argument).WithField(argument)
	}
	return found[0], nil
}

func (r queryResolver) Domain(ctx context.Context, name string) (*ent.Domain, error) {
	return only(ctx, r.Client.Domain.Query().Where(domain.Name(name)), "Domain", "name")
}

func (r queryResolver) Project(ctx context.Context, name string, in *uuid.UUID) (*ent.Project, error) {
	q := r.Client.Project.Query().Where(project.Name(name)).Limit(2)
	if in != nil {
		q.Where(project.DomainID(*in))
	}
	return only(ctx, q, "Project", "domain")
}

// User finds a user by e-mail address or username.
func (r queryResolver) User(ctx context.Context, name string) (*ent.User, error) {
	return only(ctx, r.Client.User.Query().Where(user.Or(user.Email(strings.ToLower(name)), user.Username(name))).Limit(2), "User", "name")
}

func (r queryResolver) ResourceGroup(ctx context.Context, name string) (*ent.ResourceGroup, error) {
	return only(ctx, r.Client.ResourceGroup.Query().Where(resourcegroup.Name(name)), "ResourceGroup", "name")
}

func (r queryResolver) Agent(ctx context.Context, name string) (*ent.Agent, error) {
	return only(ctx, r.Client.Agent.Query().Where(agent.Name(name)), "Agent", "name")
}

// Image finds an image that the viewer can use by its full reference or its short name.
func (r queryResolver) Image(ctx context.Context, name string, architecture *string) (*ent.Image, error) {
	q := r.Client.Image.Query().Where(image.Open(ctx)).Limit(2)
	if architecture != nil {
		q.Where(entimage.Architecture(*architecture))
	}
	found, err := only(ctx, q.Clone().Where(entimage.Or(entimage.Reference(name), entimage.Name(name))), "Image", "architecture")
	if v := viewer.From(ctx); found == nil && err == nil && v != nil && !v.IsAnonymous() && !strings.Contains(name, "/") {
		return only(ctx, q.Where(image.OwnNamed(v, name)), "Image", "architecture")
	}
	return found, err
}

// Registry finds a registry by name or host.
func (r queryResolver) Registry(ctx context.Context, name string) (*ent.Registry, error) {
	return only(ctx, r.Client.Registry.Query().Where(registry.Or(registry.Name(name), registry.Host(name))).Limit(2), "Registry", "name")
}

func (r queryResolver) ResourcePolicy(ctx context.Context, name string) (*ent.ResourcePolicy, error) {
	return only(ctx, r.Client.ResourcePolicy.Query().Where(resourcepolicy.Name(name)), "ResourcePolicy", "name")
}

func (r queryResolver) Role(ctx context.Context, name string) (*ent.Role, error) {
	return only(ctx, r.Client.Role.Query().Where(role.Name(name)), "Role", "name")
}

func (r queryResolver) Volume(ctx context.Context, name string) (*ent.Volume, error) {
	return only(ctx, r.Client.Volume.Query().Where(volume.Name(name)), "Volume", "name")
}

func (r queryResolver) IdleChecker(ctx context.Context, name string) (*ent.IdleChecker, error) {
	return only(ctx, r.Client.IdleChecker.Query().Where(idlechecker.Name(name)), "IdleChecker", "name")
}

func (r queryResolver) IdentityProvider(ctx context.Context, name string) (*ent.IdentityProvider, error) {
	return only(ctx, r.Client.IdentityProvider.Query().Where(identityprovider.Name(name)), "IdentityProvider", "name")
}
