package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/client"
)

// IsID reports whether a reference is an ID.
func IsID(ref string) bool {
	_, err := uuid.Parse(ref)
	return err == nil && len(ref) == 36
}

// FindSession finds a session by ID or name: a live session, otherwise the newest that has ended.
func FindSession(ctx context.Context, c *client.Client, ref string) (*client.Session, error) {
	if IsID(ref) {
		all, err := c.Sessions(ctx, client.SessionFilter{ID: ref, Limit: 1})
		return One(ctx, c, "session", ref, all, err, sessionKey)
	}
	live, err := c.Sessions(ctx, client.SessionFilter{Name: ref, Live: true, Limit: 20})
	if err != nil || len(live) > 0 {
		return One(ctx, c, "live session", ref, live, err, sessionKey)
	}
	past, err := c.Sessions(ctx, client.SessionFilter{Name: ref, Limit: 1})
	return One(ctx, c, "session", ref, past, err, sessionKey)
}

func sessionKey(s client.Session) (id, owner string) {
	if s.Owner != nil {
		owner = s.Owner.ID
	}
	return s.ID, owner
}

// FindContainer finds a container of a session by ID or by its name: main, sub1 and so on.
func FindContainer(ctx context.Context, c *client.Client, session, ref string) (*client.Container, error) {
	found, err := c.SessionContainers(ctx, client.SessionFilter{ID: session, Limit: 1})
	if err != nil {
		return nil, err
	}
	var have []string
	for _, s := range found {
		for _, k := range s.Kernels {
			if k.ID == ref || k.Hostname == ref {
				return &k, nil
			}
			have = append(have, k.Hostname)
		}
	}
	return nil, NotFound("container", ref, "the session has: "+strings.Join(have, ", "))
}

// FindFolder finds a folder by ID or name.
func FindFolder(ctx context.Context, c *client.Client, ref string) (*client.Folder, error) {
	filter := client.FolderFilter{Name: ref}
	if IsID(ref) {
		filter = client.FolderFilter{ID: ref}
	}
	all, err := c.Folders(ctx, filter)
	return One(ctx, c, "folder", ref, all, err, func(f client.Folder) (id, owner string) {
		if f.Owner != nil {
			owner = f.Owner.ID
		}
		return f.ID, owner
	})
}

// FindAgent finds an agent by ID or name.
func FindAgent(ctx context.Context, c *client.Client, ref string) (*client.Agent, error) {
	if !IsID(ref) {
		found, err := c.AgentByName(ctx, ref)
		return ByName("agent", ref, found, err)
	}
	all, err := c.Agents(ctx, "")
	return Pick(ctx, c, "agent", ref, all, err, func(a client.Agent) (id, name string) { return a.ID, a.Name })
}

// FindImage finds an image by ID, name or reference.
func FindImage(ctx context.Context, c *client.Client, ref string) (*client.Image, error) {
	if !IsID(ref) {
		found, err := c.ImageByName(ctx, ref)
		return ByName("image", ref, found, err)
	}
	all, err := c.Images(ctx, "")
	return Pick(ctx, c, "image", ref, all, err, func(i client.Image) (id, name string) { return i.ID, i.Name })
}

// ByName returns the result of a look-up by name. If there is none, the error is the usual one.
func ByName[T any](noun, ref string, found *T, err error) (*T, error) {
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("%s %q does not exist: %w", noun, ref, errdefs.ErrNotFound)
	}
	return found, err
}

// Pick returns the only object with this ID or name; see One for several.
func Pick[T any](ctx context.Context, c *client.Client, noun, ref string, all []T, err error, key func(T) (id, name string)) (*T, error) {
	var kept []T
	for _, x := range all {
		if id, name := key(x); id == ref || name == ref {
			kept = append(kept, x)
		}
	}
	return One(ctx, c, noun, ref, kept, err, func(x T) (id, owner string) {
		id, _ = key(x)
		return id, ""
	})
}

// One returns the only match. If several match, it prefers the caller's own.
func One[T any](ctx context.Context, c *client.Client, noun, ref string, all []T, err error, key func(T) (id, owner string)) (*T, error) {
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, fmt.Errorf("%s %q does not exist: %w", noun, ref, errdefs.ErrNotFound)
	case len(all) == 1:
		return &all[0], nil
	}
	who, err := c.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	var mine *T
	var ids []string
	for i := range all {
		id, owner := key(all[i])
		ids = append(ids, id)
		if owner == who.User.ID {
			if mine != nil {
				mine = nil
				break
			}
			mine = &all[i]
		}
	}
	if mine != nil {
		return mine, nil
	}
	return nil, fmt.Errorf("there are several %ss %q; name one by its id: %s: %w", noun, ref, strings.Join(ids, ", "), errdefs.ErrFailedPrecondition)
}

// NotFound returns the error that an object does not exist, with a hint.
func NotFound(noun, ref, hint string) error {
	return fmt.Errorf("%s %q does not exist; %s: %w", noun, ref, hint, errdefs.ErrNotFound)
}

// FindRef finds an ID in a short list of named objects.
func FindRef(noun, ref string, all []client.Ref) (string, error) {
	var have []string
	for _, r := range all {
		if r.ID == ref || r.Name == ref {
			return r.ID, nil
		}
		have = append(have, r.Name)
	}
	return "", fmt.Errorf("%s %q does not exist or is not open to you; there are: %s: %w", noun, ref, strings.Join(have, ", "), errdefs.ErrNotFound)
}

// FindSessionGroupID finds a session group by name or id.
func FindSessionGroupID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return IDOr(ref, func() (*client.SessionGroup, error) {
		list, err := c.SessionGroups(ctx, ref)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 0:
			return nil, NotFound("session group", ref, "see: berth session-group ls")
		case len(list) > 1:
			return nil, Usagef("%d session groups are named %s; name one by its id", len(list), ref)
		}
		return &list[0], nil
	}, func(g *client.SessionGroup) string { return g.ID })
}

// FindArray finds an array of sessions by ID or name: the newest with a live member, else the
// newest.
func FindArray(ctx context.Context, c *client.Client, ref string) (*client.SessionArray, error) {
	f := client.SessionArrayFilter{Name: ref, Limit: 1}
	if IsID(ref) {
		f = client.SessionArrayFilter{ID: ref, Limit: 1}
	}
	f.Live = true
	all, err := c.SessionArrays(ctx, f)
	if err == nil && len(all) == 0 {
		f.Live = false
		all, err = c.SessionArrays(ctx, f)
	}
	return One(ctx, c, "array", ref, all, err, func(a client.SessionArray) (id, owner string) { return a.ID, "" })
}

// FindTemplate finds a template by ID or name; the caller's own come before those of projects.
func FindTemplate(ctx context.Context, c *client.Client, ref string) (*client.SessionTemplate, error) {
	name := ref
	if IsID(ref) {
		name = ""
	}
	all, err := c.SessionTemplates(ctx, name)
	if err == nil && name == "" {
		all = slices.DeleteFunc(all, func(t client.SessionTemplate) bool { return t.ID != ref })
	}
	return One(ctx, c, "template", ref, all, err, func(t client.SessionTemplate) (id, owner string) {
		if t.Owner != nil {
			owner = t.Owner.ID
		}
		return t.ID, owner
	})
}

// FindTemplateID returns the ID of a template.
func FindTemplateID(ctx context.Context, c *client.Client, ref string) (string, error) {
	t, err := FindTemplate(ctx, c, ref)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

// FindDeployment finds a deployment by ID or name: a live one, otherwise the newest that has ended.
func FindDeployment(ctx context.Context, c *client.Client, ref string) (*client.Deployment, error) {
	f := client.DeploymentFilter{Name: ref, Live: true}
	if IsID(ref) {
		f = client.DeploymentFilter{ID: ref}
	}
	all, err := c.Deployments(ctx, f)
	if err == nil && len(all) == 0 && !IsID(ref) {
		f.Live = false
		all, err = c.Deployments(ctx, f)
		slices.SortFunc(all, func(x, y client.Deployment) int { return y.CreatedAt.Compare(x.CreatedAt) })
		all = all[:min(len(all), 1)]
	}
	return One(ctx, c, "deployment", ref, all, err, func(d client.Deployment) (id, owner string) { return d.ID, d.Owner.ID })
}
