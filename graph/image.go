package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/imagecopy"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/commit"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/prepull"
	"github.com/berthhq/berth/manager/slot"
)

func (r queryResolver) Images(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ImageOrder, where *ent.ImageWhereInput) (*ent.ImageConnection, error) {
	return r.Client.Image.Query().Where(image.Listed(ctx)).Paginate(ctx, after, first, before, last, ent.WithImageOrder(orderBy), ent.WithImageFilter(where.Filter))
}

func (r queryResolver) Registries(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.RegistryOrder, where *ent.RegistryWhereInput) (*ent.RegistryConnection, error) {
	return r.Client.Registry.Query().Paginate(ctx, after, first, before, last, ent.WithRegistryOrder(orderBy), ent.WithRegistryFilter(where.Filter))
}

func (r mutationResolver) CreateRegistry(ctx context.Context, input image.CreateRegistryInput) (*image.RegistryPayload, error) {
	return r.Resolver.Images.CreateRegistry(ctx, input)
}

func (r mutationResolver) UpdateRegistry(ctx context.Context, input image.UpdateRegistryInput) (*image.RegistryPayload, error) {
	return r.Resolver.Images.UpdateRegistry(ctx, input)
}

func (r mutationResolver) DeleteRegistry(ctx context.Context, input image.DeleteRegistryInput) (*image.DeleteRegistryPayload, error) {
	return r.Resolver.Images.DeleteRegistry(ctx, input)
}

func (r imageResolver) MinimumSlots(_ context.Context, i *ent.Image) (resource.Slots, error) {
	return slot.Minimum(i), nil
}

func (r mutationResolver) ScanRegistry(ctx context.Context, input image.ScanRegistryInput) (*image.ScanRegistryPayload, error) {
	return r.Resolver.Images.ScanRegistry(ctx, input)
}

func (r mutationResolver) TestRegistry(ctx context.Context, input image.TestRegistryInput) (*image.TestRegistryPayload, error) {
	return r.Resolver.Images.TestRegistry(ctx, input)
}

func (r queryResolver) ScanResults(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.ScanResultOrder, where *ent.ScanResultWhereInput) (*ent.ScanResultConnection, error) {
	return r.Client.ScanResult.Query().Paginate(ctx, after, first, before, last, ent.WithScanResultOrder(orderBy), ent.WithScanResultFilter(where.Filter))
}

func (r mutationResolver) RenameImage(ctx context.Context, input image.RenameImageInput) (*image.ImagePayload, error) {
	return r.Resolver.Images.RenameImage(ctx, input)
}

func (r mutationResolver) RollbackImage(ctx context.Context, input image.RollbackImageInput) (*image.ImagePayload, error) {
	return r.Resolver.Images.RollbackImage(ctx, input)
}

// Moved reports whether the tag has another digest at the registry.
func (r imageResolver) Moved(_ context.Context, i *ent.Image) (bool, error) {
	return image.Moved(i), nil
}

func (r imageResolver) TagDigest(_ context.Context, i *ent.Image) (string, error) {
	return image.TagDigest(i), nil
}

// Versions returns the contents that the tag had, newest first.
func (r imageResolver) Versions(ctx context.Context, i *ent.Image) ([]*ent.ImageVersion, error) {
	return loaders(ctx).versions.Load(ctx, i.ID)
}

// Change compares two versions.
func (r imageResolver) Change(ctx context.Context, i *ent.Image, from, to *string) (*image.ImageChange, error) {
	versions, err := loaders(ctx).versions.Load(ctx, i.ID)
	if err != nil {
		return nil, err
	}
	return image.Change(versions, from, to), nil
}

func (r mutationResolver) RegisterImage(ctx context.Context, input image.RegisterImageInput) (*image.ImagePayload, error) {
	return r.Resolver.Images.RegisterImage(ctx, input)
}

func (r mutationResolver) SweepRegistry(ctx context.Context, input image.SweepRegistryInput) (*image.SweepRegistryPayload, error) {
	return r.Resolver.Images.SweepRegistry(ctx, input)
}

func (r mutationResolver) SetRegistryWebhook(ctx context.Context, input image.SetRegistryWebhookInput) (*image.SetRegistryWebhookPayload, error) {
	return r.Resolver.Images.SetRegistryWebhook(ctx, input)
}

// ImageAttachments reads what the registry has attached to the digest of an image.
func (r queryResolver) ImageAttachments(ctx context.Context, id uuid.UUID) ([]*image.ImageAttachment, error) {
	return r.Resolver.Images.Attachments(ctx, id)
}

// Webhook reports whether a registry has one.
func (r registryResolver) Webhook(_ context.Context, reg *ent.Registry) (bool, error) {
	return len(reg.WebhookHash) > 0, nil
}

// Sweepable reports whether a registry is the one for images of sessions.
func (r registryResolver) Sweepable(_ context.Context, reg *ent.Registry) (bool, error) {
	return r.Resolver.Images.Sweepable(reg), nil
}

func (r mutationResolver) CommitSession(ctx context.Context, input commit.CommitSessionInput) (*commit.CommitSessionPayload, error) {
	return r.Commits.CommitSession(ctx, input)
}

func (r mutationResolver) UpdateImage(ctx context.Context, input image.UpdateImageInput) (*image.ImagePayload, error) {
	return r.Resolver.Images.UpdateImage(ctx, input)
}

func (r mutationResolver) PrepullImage(ctx context.Context, input prepull.PrepullImageInput) (*prepull.PrepullImagePayload, error) {
	return r.Prepulls.PrepullImage(ctx, input)
}

// Copies returns the agents that have the content of an image or are pulling it.
func (r imageResolver) Copies(ctx context.Context, i *ent.Image) ([]*ent.ImageCopy, error) {
	return loaders(ctx).copies.Load(ctx, content{i.Reference, i.Digest})
}

// maxCopies limits the agents that an image lists.
const maxCopies = 1000

// content is what agents have of an image.
type content struct{ reference, digest string }

// copiesOf returns the copies of images, by the names of their agents.
func (r *Resolver) copiesOf(ctx context.Context, wanted []content) (map[content][]*ent.ImageCopy, error) {
	out := make(map[content][]*ent.ImageCopy, len(wanted))
	references := make([]string, len(wanted))
	for n, w := range wanted {
		out[w], references[n] = []*ent.ImageCopy{}, w.reference
	}
	copies, err := r.Client.ImageCopy.Query().Where(imagecopy.ReferenceIn(references...)).
		Order(imagecopy.ByAgentField(agent.FieldName)).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range copies {
		key := content{c.Reference, c.Digest}
		if list, is := out[key]; is && len(list) < maxCopies {
			out[key] = append(list, c)
		}
	}
	return out, nil
}

// Use returns how much an image is used, in what the viewer can see.
func (r imageResolver) Use(ctx context.Context, i *ent.Image) (*image.ImageUse, error) {
	return loaders(ctx).imageUses.Load(ctx, i.ID)
}

func (r queryResolver) ImageUsage(ctx context.Context) (*commit.ImageUsage, error) {
	return r.Commits.Usage(ctx)
}

func (r mutationResolver) DeleteImage(ctx context.Context, input image.DeleteImageInput) (*image.DeleteImagePayload, error) {
	return r.Resolver.Images.DeleteImage(ctx, input)
}
