package image

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// DefaultTag is the tag of an image without one.
const DefaultTag = latest

// Limits of the names of own images.
const (
	maxOwnName    = 100
	maxTag        = 128
	ownNameSyntax = "1 to 100 lower-case letters and digits, with single . _ - between them"
)

var ownNameRule = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// CheckOwnName returns an error for a name or a tag that an image of a user cannot have.
func CheckOwnName(name, tag string) error {
	if len(name) > maxOwnName || !ownNameRule.MatchString(name) {
		return problem.Invalid("name", "%.200q is not %s", name, ownNameSyntax).WithLimit(ownNameSyntax)
	}
	if !tagRule.MatchString(tag) {
		return problem.Invalid("tag", "%.200q is not 1 to %d letters, digits and . _ - of which the first is a letter, a digit or _", tag, maxTag).WithLimit(fmt.Sprint(maxTag))
	}
	return nil
}

// LockOwn keeps other images of an owner from being added or renamed before the transaction ends.
func LockOwn(ctx context.Context, tx *ent.Tx, owner uuid.UUID) error {
	return store.Lock(ctx, tx, "images "+owner.String())
}

// RenameImageInput gives an image that was made of a session another name or tag; nil: the one that it has.
type RenameImageInput struct {
	ID   uuid.UUID
	Name *string
	Tag  *string
}

// RenameImage renames an image that was made of a session. The image gets its new name in the registry first. It loses
// the old one last, and its content stays there without a tag for the time that the rules of the registry say, so that a
// pull with the old name ends well.
func (s *Service) RenameImage(ctx context.Context, in RenameImageInput) (*ImagePayload, error) {
	i, err := s.changeableImage(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if i.SessionID == nil || i.OwnerID == nil || !strings.HasPrefix(i.Name, ownPath) {
		return nil, problem.Precondition("image %s has no owner: only images that users made of sessions can be renamed", i.Name).WithField("id")
	}
	reg, err := s.OwnRegistry(ctx)
	if err != nil {
		return nil, err
	}
	to, err := in.target(i)
	if err != nil {
		return nil, err
	}
	if to.full() == i.Reference {
		return nil, problem.Precondition("image %s has this name already", to.short()).WithField("name")
	}
	if err := free(ctx, s.client, to); err != nil {
		return nil, err
	}
	from := repositoryOf(i.Name)
	if err := s.copyOwn(ctx, reg, from, i.Digest, to.path); err != nil {
		return nil, err
	}
	out := &ImagePayload{}
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		if err := LockOwn(ctx, tx, *i.OwnerID); err != nil {
			return err
		}
		out.Image, err = s.rename(ctx, tx, reg, i, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Image = out.Image.Unwrap()
	if err := s.untagOwn(ctx, reg, i.Name); err != nil {
		// Nothing refers to the old name any longer. It takes space until its owner uses it again.
		s.log.WarnContext(ctx, "old name of a renamed image", "image", i.Reference, "error", err)
	}
	return out, nil
}

// rename changes the row of an image, and gives its content the new tag.
func (s *Service) rename(ctx context.Context, tx *ent.Tx, reg *ent.Registry, i *ent.Image, to reference) (*ent.Image, error) {
	now, err := tx.Image.Query().Where(entimage.ID(i.ID)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "image", "id")
	}
	if now.Reference != i.Reference || now.Digest != i.Digest || now.Status != entimage.StatusAlive {
		return nil, problem.Precondition("image %s was changed meanwhile: try again", i.Name).WithField("id")
	}
	if err := free(ctx, tx.Client(), to); err != nil {
		return nil, err
	}
	if now, err = now.Update().SetReference(to.full()).SetName(to.name()).Save(ctx); err != nil {
		return nil, fmt.Errorf("rename image: %w", err)
	}
	// The row is visible after the tag: the transaction ends next.
	return now, s.TagOwn(ctx, reg, to.path, i.Digest, to.tag)
}

// target returns the new reference of an image.
func (in *RenameImageInput) target(i *ent.Image) (reference, error) {
	host, _, _ := strings.Cut(i.Reference, "/")
	repository := repositoryOf(i.Name)
	slash := strings.LastIndexByte(repository, '/')
	name, tag := repository[slash+1:], i.Name[len(repository)+1:]
	if in.Name != nil {
		name = *in.Name
	}
	if in.Tag != nil {
		tag = *in.Tag
	}
	return reference{host: host, path: repository[:slash+1] + name, tag: tag}, CheckOwnName(name, tag)
}

func (r reference) short() string { return r.name()[strings.LastIndexByte(r.path, '/')+1:] }

// free returns an error if an image has a reference.
func free(ctx context.Context, c *ent.Client, to reference) error {
	has, err := c.Image.Query().Where(entimage.Reference(to.full())).All(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("look up image: %w", err)
	}
	switch {
	case len(has) == 0:
		return nil
	case has[0].Status == entimage.StatusAlive:
		return problem.Exists("name", "the image %s exists", to.short())
	}
	return problem.Exists("name", "the image %s was deleted and belongs to the history of sessions: choose another name or tag", to.short())
}

// copyOwn adds the content of an image to another repository of its owner.
func (s *Service) copyOwn(ctx context.Context, r *ent.Registry, from, digest, to string) error {
	if from == to {
		return nil
	}
	source, err := s.writer(r, from)
	if err != nil {
		return err
	}
	defer source.Close()
	token, err := s.own.Key.Sign(pushtoken.Grant{Repository: to, From: from, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		return err
	}
	target, err := remote.Open(remote.Registry{Host: r.Host, PlainHTTP: r.PlainHTTP, Username: pushtoken.User, Password: token, CA: r.Certificates})
	if err != nil {
		return err
	}
	defer target.Close()
	if err := target.Copy(ctx, source, from+"@"+digest, to); err != nil {
		return explain(r, "image "+from+"@"+digest, err)
	}
	return nil
}

// untagOwn removes the old name of a renamed image. A new image may have got it meanwhile.
func (s *Service) untagOwn(ctx context.Context, r *ent.Registry, name string) error {
	used, err := s.client.Image.Query().Where(entimage.Reference(r.Host+"/"+name), entimage.StatusEQ(entimage.StatusAlive)).Exist(viewer.SystemContext(ctx))
	if err != nil || used {
		return err
	}
	from, err := s.writer(r, repositoryOf(name))
	if err != nil {
		return err
	}
	defer from.Close()
	return from.Untag(ctx, name)
}
