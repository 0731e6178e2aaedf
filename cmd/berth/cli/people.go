package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
)

// FindUser finds a user by e-mail, username or id.
func FindUser(ctx context.Context, c *client.Client, ref string) (*client.User, error) {
	if !IsID(ref) {
		found, err := c.UserByName(ctx, ref)
		return ByName("user", ref, found, err)
	}
	all, err := c.Users(ctx, client.UserFilter{ID: ref})
	return Pick(ctx, c, "user", ref, all, err, func(u client.User) (id, name string) { return u.ID, u.Email })
}

// FindProject finds a project by name, domain/name or id.
func FindProject(ctx context.Context, c *client.Client, ref string) (*client.Project, error) {
	if IsID(ref) {
		all, err := c.Projects(ctx, "")
		return Pick(ctx, c, "project", ref, all, err, func(p client.Project) (id, name string) { return p.ID, p.Name })
	}
	domain, name, within := strings.Cut(ref, "/")
	in := ""
	if !within {
		name = ref
	} else if d, err := c.DomainByName(ctx, domain); err == nil {
		in = d.ID
	} else {
		return ByName[client.Project]("project", ref, nil, err)
	}
	p, err := c.ProjectByName(ctx, name, in)
	if errdefs.IsFailedPrecondition(err) {
		return nil, severalProjects(ctx, c, name)
	}
	return ByName("project", ref, p, err)
}

// severalProjects returns an error that lists the projects with the same name and their domains.
func severalProjects(ctx context.Context, c *client.Client, name string) error {
	all, err := c.Projects(ctx, name)
	if err != nil {
		return err
	}
	var have []string
	for _, p := range all {
		have = append(have, p.Domain.Name+"/"+p.Name)
	}
	return fmt.Errorf("there are several projects %q; name one as %s: %w", name, strings.Join(have, " or "), errdefs.ErrFailedPrecondition)
}

// FindDomain finds a domain by ID or name.
func FindDomain(ctx context.Context, c *client.Client, ref string) (*client.Domain, error) {
	if !IsID(ref) {
		found, err := c.DomainByName(ctx, ref)
		return ByName("domain", ref, found, err)
	}
	all, err := c.Domains(ctx, "")
	return Pick(ctx, c, "domain", ref, all, err, func(d client.Domain) (id, name string) { return d.ID, d.Name })
}

// DomainOrMine returns the ID of a domain; "" is the viewer's domain.
func DomainOrMine(ctx context.Context, c *client.Client, ref string) (string, error) {
	if ref != "" {
		return FindDomainID(ctx, c, ref)
	}
	who, err := c.Viewer(ctx)
	if err != nil {
		return "", err
	}
	return who.User.Domain.ID, nil
}

// FindPolicy finds a resource policy by ID or name.
func FindPolicy(ctx context.Context, c *client.Client, ref string) (*client.Policy, error) {
	if !IsID(ref) {
		found, err := c.PolicyByName(ctx, ref)
		return ByName("resource policy", ref, found, err)
	}
	all, err := c.Policies(ctx, "")
	return Pick(ctx, c, "resource policy", ref, all, err, func(p client.Policy) (id, name string) { return p.ID, p.Name })
}

// FindGroup finds a resource group by ID or name.
func FindGroup(ctx context.Context, c *client.Client, ref string) (*client.Group, error) {
	if !IsID(ref) {
		found, err := c.GroupByName(ctx, ref)
		return ByName("resource group", ref, found, err)
	}
	all, err := c.Groups(ctx, "")
	return Pick(ctx, c, "resource group", ref, all, err, func(g client.Group) (id, name string) { return g.ID, g.Name })
}

// FindRole finds a role by ID or name.
func FindRole(ctx context.Context, c *client.Client, ref string) (*client.Role, error) {
	if !IsID(ref) {
		found, err := c.RoleByName(ctx, ref)
		return ByName("role", ref, found, err)
	}
	all, err := c.Roles(ctx, "")
	return Pick(ctx, c, "role", ref, all, err, func(r client.Role) (id, name string) { return r.ID, r.Name })
}

// FindVolume finds a volume by ID or name.
func FindVolume(ctx context.Context, c *client.Client, ref string) (*client.Volume, error) {
	if !IsID(ref) {
		found, err := c.VolumeByName(ctx, ref)
		return ByName("volume", ref, found, err)
	}
	all, err := c.Volumes(ctx)
	return Pick(ctx, c, "volume", ref, all, err, func(v client.Volume) (id, name string) { return v.ID, v.Name })
}

// FindKeypair finds a keypair by name, access key or ID, of the named user or, for "", of the
// caller. A reference user/keypair names the user as well.
func FindKeypair(ctx context.Context, c *client.Client, ref, user string) (*client.Keypair, error) {
	if owner, key, ok := strings.Cut(ref, "/"); ok {
		u, err := FindUser(ctx, c, owner)
		if err != nil {
			return nil, err
		}
		ref, user = key, u.ID
	}
	all, err := c.Keypairs(ctx, user)
	return Pick(ctx, c, "keypair", ref, all, err, func(k client.Keypair) (id, name string) {
		if k.Name == ref {
			return k.ID, k.Name
		}
		return k.ID, k.AccessKey
	})
}

// The functions below return an ID unchanged, because the server reports whether it exists, and ""
// for "".

// FindDomainID returns the ID of a domain.
func FindDomainID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.Domain, error) { return FindDomain(ctx, c, ref) }, func(d *client.Domain) string { return d.ID })
}

// FindProjectID returns the ID of a project.
func FindProjectID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.Project, error) { return FindProject(ctx, c, ref) }, func(p *client.Project) string { return p.ID })
}

// FindProjectIDs returns the IDs of several projects.
func FindProjectIDs(ctx context.Context, c *client.Client, refs []string) ([]string, error) {
	var ids []string
	for _, ref := range refs {
		id, err := FindProjectID(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// FindUserID returns the ID of a user.
func FindUserID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.User, error) { return FindUser(ctx, c, ref) }, func(u *client.User) string { return u.ID })
}

// FindGroupID returns the ID of a resource group.
func FindGroupID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.Group, error) { return FindGroup(ctx, c, ref) }, func(g *client.Group) string { return g.ID })
}

// FindPolicyID returns the ID of a resource policy.
func FindPolicyID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.Policy, error) { return FindPolicy(ctx, c, ref) }, func(p *client.Policy) string { return p.ID })
}

// FindRoleID returns the ID of a role.
func FindRoleID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.Role, error) { return FindRole(ctx, c, ref) }, func(r *client.Role) string { return r.ID })
}

// FindKeypairID returns the ID of a keypair.
func FindKeypairID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.Keypair, error) { return FindKeypair(ctx, c, ref, "") }, func(k *client.Keypair) string { return k.ID })
}

// IDOr returns ref if it is an ID or empty, and otherwise the ID of the object that find finds.
func IDOr[T any](ref string, find func() (*T, error), id func(*T) string) (string, error) {
	if ref == "" || IsID(ref) {
		return ref, nil
	}
	found, err := find()
	if err != nil {
		return "", err
	}
	return id(found), nil
}
