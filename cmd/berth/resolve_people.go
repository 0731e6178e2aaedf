package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/containerd/errdefs"
)

// findUser finds a user by e-mail, username or id.
func findUser(ctx context.Context, c *client.Client, ref string) (*client.User, error) {
	filter := client.UserFilter{Name: ref}
	if isID(ref) {
		filter = client.UserFilter{ID: ref}
	}
	all, err := c.Users(ctx, filter)
	return pick(ctx, c, "user", ref, all, err, func(u client.User) (id, name string) {
		if u.Username == ref {
			return u.ID, u.Username
		}
		return u.ID, u.Email
	})
}

// findProject finds a project by name, domain/name or id.
func findProject(ctx context.Context, c *client.Client, ref string) (*client.Project, error) {
	domain, name, within := strings.Cut(ref, "/")
	if !within {
		name = ref
	}
	if isID(ref) {
		name = ""
	}
	all, err := c.Projects(ctx, name)
	p, err := pick(ctx, c, "project", ref, all, err, func(p client.Project) (id, name string) {
		if within && p.Domain.Name == domain {
			return p.ID, domain + "/" + p.Name
		}
		return p.ID, p.Name
	})
	if errdefs.IsFailedPrecondition(err) {
		var have []string
		for _, p := range all {
			have = append(have, p.Domain.Name+"/"+p.Name)
		}
		err = fmt.Errorf("there are several projects %q; name one as %s: %w", ref, strings.Join(have, " or "), errdefs.ErrFailedPrecondition)
	}
	return p, err
}

func findDomain(ctx context.Context, c *client.Client, ref string) (*client.Domain, error) {
	all, err := c.Domains(ctx, nameOrAll(ref))
	return pick(ctx, c, "domain", ref, all, err, func(d client.Domain) (id, name string) { return d.ID, d.Name })
}

// domainOrMine finds a domain's id; "" is the viewer's domain.
func domainOrMine(ctx context.Context, c *client.Client, ref string) (string, error) {
	if ref != "" {
		return findDomainID(ctx, c, ref)
	}
	who, err := c.Viewer(ctx)
	if err != nil {
		return "", err
	}
	return who.User.Domain.ID, nil
}

func findPolicy(ctx context.Context, c *client.Client, ref string) (*client.Policy, error) {
	all, err := c.Policies(ctx, nameOrAll(ref))
	return pick(ctx, c, "resource policy", ref, all, err, func(p client.Policy) (id, name string) { return p.ID, p.Name })
}

func findGroup(ctx context.Context, c *client.Client, ref string) (*client.Group, error) {
	all, err := c.Groups(ctx, nameOrAll(ref))
	return pick(ctx, c, "resource group", ref, all, err, func(g client.Group) (id, name string) { return g.ID, g.Name })
}

func findRole(ctx context.Context, c *client.Client, ref string) (*client.Role, error) {
	all, err := c.Roles(ctx, nameOrAll(ref))
	return pick(ctx, c, "role", ref, all, err, func(r client.Role) (id, name string) { return r.ID, r.Name })
}

func findVolume(ctx context.Context, c *client.Client, ref string) (*client.Volume, error) {
	all, err := c.Volumes(ctx)
	return pick(ctx, c, "volume", ref, all, err, func(v client.Volume) (id, name string) { return v.ID, v.Name })
}

// findKeypair finds a keypair of a user, "" for one's own, by name, access key
// or id. A reference user/keypair names another's.
func findKeypair(ctx context.Context, c *client.Client, ref, user string) (*client.Keypair, error) {
	if owner, key, ok := strings.Cut(ref, "/"); ok {
		u, err := findUser(ctx, c, owner)
		if err != nil {
			return nil, err
		}
		ref, user = key, u.ID
	}
	all, err := c.Keypairs(ctx, user)
	return pick(ctx, c, "keypair", ref, all, err, func(k client.Keypair) (id, name string) {
		if k.Name == ref {
			return k.ID, k.Name
		}
		return k.ID, k.AccessKey
	})
}

// Of an id that was given, the server says itself whether there is such a
// thing; "" stays "".

func findDomainID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.Domain, error) { return findDomain(ctx, c, ref) }, func(d *client.Domain) string { return d.ID })
}

func findProjectID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.Project, error) { return findProject(ctx, c, ref) }, func(p *client.Project) string { return p.ID })
}

func findProjectIDs(ctx context.Context, c *client.Client, refs []string) ([]string, error) {
	var ids []string
	for _, ref := range refs {
		id, err := findProjectID(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func findUserID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.User, error) { return findUser(ctx, c, ref) }, func(u *client.User) string { return u.ID })
}

func findGroupID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.Group, error) { return findGroup(ctx, c, ref) }, func(g *client.Group) string { return g.ID })
}

func findPolicyID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.Policy, error) { return findPolicy(ctx, c, ref) }, func(p *client.Policy) string { return p.ID })
}

func findRoleID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.Role, error) { return findRole(ctx, c, ref) }, func(r *client.Role) string { return r.ID })
}

func findKeypairID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.Keypair, error) { return findKeypair(ctx, c, ref, "") }, func(k *client.Keypair) string { return k.ID })
}

func idOr[T any](ref string, find func() (*T, error), id func(*T) string) (string, error) {
	if ref == "" || isID(ref) {
		return ref, nil
	}
	found, err := find()
	if err != nil {
		return "", err
	}
	return id(found), nil
}

// nameOrAll is the name to ask the server for; an id is looked for among all.
func nameOrAll(ref string) string {
	if isID(ref) {
		return ""
	}
	return ref
}
