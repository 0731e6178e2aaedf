package client

import (
	"context"
	"errors"
)

// Images lists images whose name contains part.
func (c *Client) Images(ctx context.Context, part string) ([]Image, error) {
	where := Where{}
	put(where, "nameContainsFold", part)
	return collect(0, func(first *int, after string) (*queryImagesImagesImageConnection, error) {
		out, err := queryImages(ctx, c, first, after, where)
		return &out.Images, err
	})
}

// RegisterImage registers one image by its reference.
func (c *Client) RegisterImage(ctx context.Context, reference string) (*Image, error) {
	out, err := registerImage(ctx, c, RegisterImageInput{Reference: reference})
	return &out.RegisterImage.Image, err
}

// DeleteImage removes an image from the list.
func (c *Client) DeleteImage(ctx context.Context, id string) error {
	_, err := deleteImage(ctx, c, DeleteImageInput{ID: id})
	return err
}

// Registries lists all registries.
func (c *Client) Registries(ctx context.Context) ([]Registry, error) {
	return collect(0, func(first *int, after string) (*queryRegistriesRegistriesRegistryConnection, error) {
		out, err := queryRegistries(ctx, c, first, after)
		return &out.Registries, err
	})
}

// CreateRegistry adds a registry.
func (c *Client) CreateRegistry(ctx context.Context, in CreateRegistryInput) (*Registry, error) {
	out, err := createRegistry(ctx, c, in)
	return &out.CreateRegistry.Registry, err
}

// UpdateRegistry changes the name, the address or the credentials of a registry.
func (c *Client) UpdateRegistry(ctx context.Context, in UpdateRegistryInput) (*Registry, error) {
	out, err := updateRegistry(ctx, c, in)
	return &out.UpdateRegistry.Registry, err
}

// DeleteRegistry removes a registry and its images.
func (c *Client) DeleteRegistry(ctx context.Context, id string) error {
	_, err := deleteRegistry(ctx, c, DeleteRegistryInput{ID: id})
	return err
}

// ScanRegistry starts a task that registers the tags of a registry, or returns the one that runs.
func (c *Client) ScanRegistry(ctx context.Context, id string) (*Task, error) {
	out, err := scanRegistry(ctx, c, ScanRegistryInput{ID: id})
	return &out.ScanRegistry.Task, err
}

// ScanResults lists what the latest scan of a registry found, by name; without outcomes, all.
func (c *Client) ScanResults(ctx context.Context, registry string, outcomes []Enum) ([]ScanResult, error) {
	where := Where{"registryID": registry}
	if len(outcomes) > 0 {
		where["outcomeIn"] = outcomes
	}
	return collect(0, func(first *int, after string) (*queryScanResultsScanResultsScanResultConnection, error) {
		out, err := queryScanResults(ctx, c, first, after, where)
		return &out.ScanResults, err
	})
}

// SweepRegistry starts a task that frees what no image of a registry needs, or returns the one that runs.
func (c *Client) SweepRegistry(ctx context.Context, id string, dryRun bool) (*Task, error) {
	out, err := sweepRegistry(ctx, c, SweepRegistryInput{ID: id, DryRun: dryRun})
	return &out.SweepRegistry.Task, err
}

// RegistryWebhook is the path and the secret of a webhook.
type RegistryWebhook struct {
	Path   string `json:"path"`
	Secret string `json:"secret"`
}

// EnableRegistryWebhook gives the webhook of a registry a new secret.
func (c *Client) EnableRegistryWebhook(ctx context.Context, id string) (*RegistryWebhook, error) {
	out, err := setRegistryWebhook(ctx, c, SetRegistryWebhookInput{ID: id, Enabled: true})
	if err != nil {
		return nil, err
	}
	got := out.SetRegistryWebhook
	if got.Path == nil || got.Secret == nil {
		return nil, errors.New("the answer has no secret")
	}
	return &RegistryWebhook{*got.Path, *got.Secret}, nil
}

// DisableRegistryWebhook removes the webhook of a registry.
func (c *Client) DisableRegistryWebhook(ctx context.Context, id string) error {
	_, err := setRegistryWebhook(ctx, c, SetRegistryWebhookInput{ID: id})
	return err
}

// ImageAttachments returns what is attached to an image. search limits the packages of SBOMs, of which
// there are at most limit.
func (c *Client) ImageAttachments(ctx context.Context, image, search string, limit int) ([]ImageAttachment, error) {
	out, err := queryImageAttachments(ctx, c, image, search, &limit)
	return out.ImageAttachments, err
}

// TestRegistry tries to reach a registry, to log in and to list.
func (c *Client) TestRegistry(ctx context.Context, id string) ([]RegistryCheck, error) {
	out, err := testRegistry(ctx, c, TestRegistryInput{ID: id})
	return out.TestRegistry.Checks, err
}

// RollbackImage gives an image a former digest of its tag, or the one before without a digest.
func (c *Client) RollbackImage(ctx context.Context, in RollbackImageInput) (*Image, error) {
	out, err := rollbackImage(ctx, c, in)
	return &out.RollbackImage.Image, err
}

// RenameImage gives an image that was made of a session another name or tag.
func (c *Client) RenameImage(ctx context.Context, in RenameImageInput) (*Image, error) {
	out, err := renameImage(ctx, c, in)
	return &out.RenameImage.Image, err
}

// ImageHistory is an image with the contents that its tag had.
type ImageHistory struct {
	Image
	Versions []ImageVersion `json:"versions"`
	Change   *ImageChange   `json:"change"`
}

// ImageHistory returns the versions of an image, and what differs between two of them; empty
// digests mean the two newest.
func (c *Client) ImageHistory(ctx context.Context, name, from, to string) (*ImageHistory, error) {
	out, err := queryImageHistory(ctx, c, name, from, to)
	if err != nil {
		return nil, err
	}
	if out.Image == nil {
		return nil, notFound("image", name)
	}
	return &ImageHistory{out.Image.Image, out.Image.Versions, out.Image.Change}, nil
}

// StarterImages lists the images that the source tree of Berth has recipes for.
func (c *Client) StarterImages(ctx context.Context) ([]StarterImage, error) {
	out, err := queryStarterImages(ctx, c)
	return out.StarterImages, err
}

// ImageByName returns the image with a full reference or a short name.
func (c *Client) ImageByName(ctx context.Context, name string) (*Image, error) {
	out, err := queryImageByName(ctx, c, name)
	if err == nil && out.Image == nil {
		return nil, notFound("image", name)
	}
	return out.Image, err
}

// RegistryByName returns the registry with a name or host.
func (c *Client) RegistryByName(ctx context.Context, name string) (*Registry, error) {
	out, err := queryRegistryByName(ctx, c, name)
	if err == nil && out.Registry == nil {
		return nil, notFound("registry", name)
	}
	return out.Registry, err
}

// OwnImages lists the images that a user has made of sessions.
func (c *Client) OwnImages(ctx context.Context, user string) ([]Image, error) {
	return collect(0, func(first *int, after string) (*queryImagesImagesImageConnection, error) {
		out, err := queryImages(ctx, c, first, after, Where{"ownerID": user})
		return &out.Images, err
	})
}

// UpdateImage changes the fields of an image that are set in the input.
func (c *Client) UpdateImage(ctx context.Context, in UpdateImageInput) (*Image, error) {
	out, err := updateImage(ctx, c, in)
	return &out.UpdateImage.Image, err
}

// CommitSession makes an image of a running session. It returns the task that does so, and the
// reference that the image will have.
func (c *Client) CommitSession(ctx context.Context, in CommitSessionInput) (task *Task, reference string, err error) {
	out, err := commitSession(ctx, c, in)
	return &out.CommitSession.Task, out.CommitSession.Reference, err
}

// ImageDetail returns the image with a full reference or a short name, with the agents that have it.
func (c *Client) ImageDetail(ctx context.Context, name string) (*ImageDetail, error) {
	out, err := queryImageDetail(ctx, c, name)
	if err == nil && out.Image == nil {
		return nil, notFound("image", name)
	}
	return out.Image, err
}

// PrepullImage starts a task that pulls an image on the agents of a resource group.
func (c *Client) PrepullImage(ctx context.Context, in PrepullImageInput) (*Task, error) {
	out, err := prepullImage(ctx, c, in)
	return &out.PrepullImage.Task, err
}

// BuildImage builds an image in a new session.
func (c *Client) BuildImage(ctx context.Context, in BuildImageInput) (*ImageBuild, error) {
	out, err := buildImage(ctx, c, in)
	return &out.BuildImage.Build, err
}

// CancelImageBuild ends a build and its session.
func (c *Client) CancelImageBuild(ctx context.Context, id string) (*ImageBuild, error) {
	out, err := cancelImageBuild(ctx, c, CancelImageBuildInput{ID: id})
	return &out.CancelImageBuild.Build, err
}

// ImageBuilds lists the builds that match the filter, newest first; limit 0 means all.
func (c *Client) ImageBuilds(ctx context.Context, where Where, limit int) ([]ImageBuild, error) {
	return collect(limit, func(first *int, after string) (*queryImageBuildsImageBuildsImageBuildConnection, error) {
		out, err := queryImageBuilds(ctx, c, first, after, where)
		return &out.ImageBuilds, err
	})
}

// BuildCaches lists the caches of the projects whose builds the user can see.
func (c *Client) BuildCaches(ctx context.Context) ([]BuildCache, error) {
	out, err := queryBuildCaches(ctx, c)
	return out.BuildCaches, err
}

// DeleteBuildCache removes the results of a project's builds from the registry, and returns their number and bytes.
func (c *Client) DeleteBuildCache(ctx context.Context, project string) (results int, bytes int64, err error) {
	out, err := deleteBuildCache(ctx, c, project)
	return out.DeleteBuildCache.Results, out.DeleteBuildCache.Bytes, err
}
