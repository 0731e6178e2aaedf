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

// PushToken signs a token for a commit. from is the reference of the session's image; the registry refuses
// what exceeds the quota, which can be nil.
func (s *Service) PushToken(repository, from string, quota *pushtoken.Quota) (token, mountFrom string, err error) {
	if path, ok := strings.CutPrefix(from, s.own.Host+"/"); ok {
		mountFrom = path[:strings.LastIndexByte(path, ':')]
	}
	token, err = s.own.Key.Sign(pushtoken.Grant{Repository: repository, From: mountFrom, Quota: quota, Expires: time.Now().Add(tokenLife)})
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
	defer from.Close()
	content, err := from.Inspect(ctx, repository+"@"+digest)
	if err == nil {
		err = storableAll(content.Images)
	}
	if err != nil {
		return remote.Image{}, explain(r, "image "+repository+"@"+digest, err)
	}
	if len(content.Images) != 1 || content.Images[0].Digest != digest {
		return remote.Image{}, fmt.Errorf("image %s@%s is %v at its registry", repository, digest, content.Images)
	}
	return content.Images[0], nil
}

// openOwn opens the registry for images of sessions in one of the ways: reach, writer or parts. Close the client.
func (s *Service) openOwn(ctx context.Context, open func(*ent.Registry) (*remote.Client, error)) (*ent.Registry, *remote.Client, error) {
	r, err := s.OwnRegistry(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := open(r)
	return r, c, err
}

// writer returns a client that can change a repository of the registry. Close it.
func (s *Service) writer(r *ent.Registry, repository string) (*remote.Client, error) {
	token, err := s.own.Key.Sign(pushtoken.Grant{Repository: repository, Delete: true, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		return nil, err
	}
	return remote.Open(remote.Registry{Host: r.Host, PlainHTTP: r.PlainHTTP, Username: pushtoken.User, Password: token, Proxy: r.Proxy, CA: r.Certificates})
}

// TagOwn gives an image that an agent has sent its tag.
func (s *Service) TagOwn(ctx context.Context, r *ent.Registry, repository, digest, tag string) error {
	to, err := s.writer(r, repository)
	if err != nil {
		return err
	}
	defer to.Close()
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
	defer to.Close()
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

// cachePath is the beginning of the names of the caches of builds, which are not images.
const cachePath = "cache/"

// CacheRepository returns the repository with the results of the builds of a project.
func CacheRepository(project uuid.UUID) string {
	return cachePath + strings.ReplaceAll(project.String(), "-", "")
}

// orphans returns those names below ownPath that no commit has recorded, and the caches of builds: neither must
// become public.
func (s *Service) orphans(ctx context.Context, r *ent.Registry, names []string) (map[string]bool, error) {
	if s.own.Host == "" || r.Host != s.own.Host {
		return nil, nil
	}
	out := map[string]bool{}
	var references []string
	for _, n := range names {
		if strings.HasPrefix(n, ownPath) || strings.HasPrefix(n, cachePath) || strings.HasPrefix(n, partsPath) {
			out[n] = true
			references = append(references, r.Host+"/"+n)
		}
	}
	if len(references) == 0 {
		return nil, nil
	}
	known, err := s.client.Image.Query().Where(entimage.ReferenceIn(references...)).Select(entimage.FieldName).Strings(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("look up images: %w", err)
	}
	for _, n := range known {
		delete(out, n)
	}
	return out, nil
}

// orphaned is the reason why an orphan is not registered.
const orphaned = "It belongs to a user who has not saved it or has deleted it, or to the builds of a project."

// usable returns the projects whose images the viewer can use.
func usable(v *viewer.Viewer) []uuid.UUID {
	if v.Within != uuid.Nil {
		return []uuid.UUID{v.Within}
	}
	return v.Projects
}

// PushUser is the user name that belongs to a push token.
func (s *Service) PushUser() string { return pushtoken.User }
