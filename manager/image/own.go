package image

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/viewer"

	entimage "github.com/berthhq/berth/ent/image"
)

// Own is the registry for images that are made of sessions; zero if the cluster has none.
type Own struct {
	Host string
	Key  pushtoken.Key
}

// ownPath is the beginning of the names of images that are made of sessions. The name of a public
// image cannot begin with it in the same registry, so a user cannot take the name of one.
const ownPath = "users/"

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// OwnRepository returns the repository of a user's image. It contains a part of the user's id, because
// a user name can belong to another user later.
func OwnRepository(u *ent.User, name string) string {
	login := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(u.Username), "-"), "-")
	hex := strings.ReplaceAll(u.ID.String(), "-", "")
	return ownPath + strings.TrimPrefix(login+"-", "-") + hex[len(hex)-8:] + "/" + name
}

// tokenLife is the time that an agent has for an upload.
const tokenLife = 2 * time.Hour

// PushToken signs a token for a commit. from is the reference of the session's image.
func (s *Service) PushToken(repository, from string) (token, mountFrom string, err error) {
	if path, ok := strings.CutPrefix(from, s.own.Host+"/"); ok {
		mountFrom = path[:strings.LastIndexByte(path, ':')]
	}
	token, err = s.own.Key.Sign(pushtoken.Grant{Repository: repository, From: mountFrom, Expires: time.Now().Add(tokenLife)})
	return token, mountFrom, err
}

// OwnRegistry returns the registry for images that are made of sessions.
func (s *Service) OwnRegistry(ctx context.Context) (*ent.Registry, error) {
	if s.own.Host == "" {
		return nil, problem.Precondition("this cluster has no registry for images of sessions: start the managers with --image-registry")
	}
	r, err := s.client.Registry.Query().Where(registry.Host(s.own.Host)).Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, problem.Precondition("the registry %s for images of sessions is not registered", s.own.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	return r, nil
}

// InspectOwn reads an image that an agent has sent, by its digest.
func (s *Service) InspectOwn(ctx context.Context, r *ent.Registry, repository, digest string) (remote.Image, error) {
	from, err := s.reach(r)
	if err != nil {
		return remote.Image{}, err
	}
	found, err := from.Inspect(ctx, repository+"@"+digest)
	if err != nil {
		return remote.Image{}, explain(r, "image "+repository+"@"+digest, err)
	}
	if len(found) != 1 || found[0].Digest != digest {
		return remote.Image{}, fmt.Errorf("image %s@%s is %v at its registry", repository, digest, found)
	}
	return found[0], nil
}

// writer reaches a repository of the registry with a token of this manager.
func (s *Service) writer(r *ent.Registry, repository string) (remote.Registry, error) {
	token, err := s.own.Key.Sign(pushtoken.Grant{Repository: repository, Delete: true, Expires: time.Now().Add(time.Minute)})
	return remote.Registry{Host: r.Host, PlainHTTP: r.PlainHTTP, Username: pushtoken.User, Password: token}, err
}

// TagOwn gives an image that an agent has sent its tag.
func (s *Service) TagOwn(ctx context.Context, r *ent.Registry, repository, digest, tag string) error {
	to, err := s.writer(r, repository)
	if err != nil {
		return err
	}
	return to.Tag(ctx, repository+"@"+digest, tag)
}

// DropOwn deletes an image from the registry unless a row refers to it.
func (s *Service) DropOwn(ctx context.Context, r *ent.Registry, repository, digest string) error {
	used, err := s.client.Image.Query().Where(
		entimage.NameHasPrefix(repository+":"), entimage.Digest(digest), entimage.StatusEQ(entimage.StatusAlive),
	).Exist(viewer.SystemContext(ctx))
	if err != nil || used {
		return err
	}
	to, err := s.writer(r, repository)
	if err != nil {
		return err
	}
	return to.Delete(ctx, repository+"@"+digest)
}

// deleteOwn deletes an image that was made of a session, unless live sessions use it.
func (s *Service) deleteOwn(ctx context.Context, i *ent.Image) error {
	system := viewer.SystemContext(ctx)
	n, err := s.client.Session.Query().Where(session.ImageID(i.ID), session.TerminatedAtIsNil()).Count(system)
	if err != nil {
		return fmt.Errorf("count sessions: %w", err)
	}
	if n > 0 {
		return problem.Precondition("sessions that use the image and have not ended: %d", n).WithField("id")
	}
	r, err := s.OwnRegistry(ctx)
	if err != nil {
		return err
	}
	err = s.client.Image.DeleteOneID(i.ID).Exec(system)
	if ent.IsConstraintError(err) {
		err = s.client.Image.UpdateOneID(i.ID).SetStatus(entimage.StatusGone).Exec(system)
	}
	if err != nil && !ent.IsNotFound(err) {
		return fmt.Errorf("delete image: %w", err)
	}
	repository := i.Name[:strings.LastIndexByte(i.Name, ':')]
	return s.DropOwn(ctx, r, repository, i.Digest)
}

// stray returns an error for a name below ownPath that no commit has recorded: such an image must not
// become public.
func (s *Service) stray(ctx context.Context, r *ent.Registry, name string) error {
	if s.own.Host == "" || r.Host != s.own.Host || !strings.HasPrefix(name, ownPath) {
		return nil
	}
	known, err := s.client.Image.Query().Where(entimage.Reference(r.Host + "/" + name)).Exist(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("look up image: %w", err)
	}
	if !known {
		return problem.Precondition("%s belongs to a user who has not saved it or has deleted it", name)
	}
	return nil
}

// usable returns the projects whose images the viewer can use.
func usable(v *viewer.Viewer) []uuid.UUID {
	if v.Within != uuid.Nil {
		return []uuid.UUID{v.Within}
	}
	return v.Projects
}

// PushUser is the user name that belongs to a push token.
func (s *Service) PushUser() string { return pushtoken.User }
