package client

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Image is what a session can be made from.
type Image struct {
	ID           string            `json:"id"`
	Reference    string            `json:"reference"`
	Name         string            `json:"name"`
	Architecture string            `json:"architecture"`
	Digest       string            `json:"digest"`
	SizeBytes    int64             `json:"sizeBytes"`
	Labels       map[string]string `json:"labels"`
	Status       string            `json:"status"`
	CreatedAt    time.Time         `json:"createdAt"`
	Registry     *Ref              `json:"registry"`     // nil once it was removed
	MinimumSlots resource.Slots    `json:"minimumSlots"` // of each container
}

const imageFields = `fragment imageFields on Image {
  id reference name architecture digest sizeBytes labels minimumSlots status createdAt registry { id name }
}`

var listImages = define[struct {
	Images connection[Image] `json:"images"`
}](`query Images($first: Int, $after: Cursor, $where: ImageWhereInput) {
  images(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...imageFields } } pageInfo { hasNextPage endCursor }
  }
}`, imageFields)

// Images lists images whose name contains part.
func (c *Client) Images(ctx context.Context, part string) ([]Image, error) {
	where := vars{}
	if part != "" {
		where["nameContainsFold"] = part
	}
	return collect(0, vars{"where": where}, func(v vars) (connection[Image], error) {
		out, err := listImages.run(ctx, c, v)
		return out.Images, err
	})
}

var registerImage = define[struct {
	RegisterImage struct {
		Image Image `json:"image"`
	} `json:"registerImage"`
}](`mutation RegisterImage($input: RegisterImageInput!) {
  registerImage(input: $input) { image { ...imageFields } }
}`, imageFields)

// RegisterImage makes one image known by its reference.
func (c *Client) RegisterImage(ctx context.Context, reference string) (*Image, error) {
	out, err := registerImage.run(ctx, c, vars{"input": vars{"reference": reference}})
	return &out.RegisterImage.Image, err
}

var forgetImage = define[struct {
	ForgetImage struct {
		ID string `json:"id"`
	} `json:"forgetImage"`
}](`mutation ForgetImage($input: ForgetImageInput!) { forgetImage(input: $input) { id } }`)

// ForgetImage makes an image unknown.
func (c *Client) ForgetImage(ctx context.Context, id string) error {
	_, err := forgetImage.run(ctx, c, vars{"input": vars{"id": id}})
	return err
}

// Registry is where images come from.
type Registry struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Host          string     `json:"host"`
	PlainHTTP     bool       `json:"plainHttp"`
	CreatedAt     time.Time  `json:"createdAt"`
	LastScannedAt *time.Time `json:"lastScannedAt"`
}

const registryFields = `fragment registryFields on Registry { id name host plainHttp createdAt lastScannedAt }`

var listRegistries = define[struct {
	Registries []Registry `json:"registries"`
}](`query Registries { registries { ...registryFields } }`, registryFields)

// Registries lists all registries.
func (c *Client) Registries(ctx context.Context) ([]Registry, error) {
	out, err := listRegistries.run(ctx, c, nil)
	return out.Registries, err
}

// CreateRegistryInput is a new registry.
type CreateRegistryInput struct {
	Name      string `json:"name"`
	Host      string `json:"host"`
	PlainHTTP bool   `json:"plainHttp,omitempty"`
	Username  string `json:"username,omitempty"`
	Password  string `json:"password,omitempty"`
}

var createRegistry = define[struct {
	CreateRegistry struct {
		Registry Registry `json:"registry"`
	} `json:"createRegistry"`
}](`mutation CreateRegistry($input: CreateRegistryInput!) {
  createRegistry(input: $input) { registry { ...registryFields } }
}`, registryFields)

// CreateRegistry makes a registry known.
func (c *Client) CreateRegistry(ctx context.Context, in CreateRegistryInput) (*Registry, error) {
	out, err := createRegistry.run(ctx, c, vars{"input": in})
	return &out.CreateRegistry.Registry, err
}

// UpdateRegistryInput is what becomes different of a registry. Empty credentials are taken
// away.
type UpdateRegistryInput struct {
	ID        string  `json:"id"`
	Name      *string `json:"name,omitempty"`
	PlainHTTP *bool   `json:"plainHttp,omitempty"`
	Username  *string `json:"username,omitempty"`
	Password  *string `json:"password,omitempty"`
}

var updateRegistry = define[struct {
	UpdateRegistry struct {
		Registry Registry `json:"registry"`
	} `json:"updateRegistry"`
}](`mutation UpdateRegistry($input: UpdateRegistryInput!) {
  updateRegistry(input: $input) { registry { ...registryFields } }
}`, registryFields)

// UpdateRegistry changes the name of a registry and the way to reach it.
func (c *Client) UpdateRegistry(ctx context.Context, in UpdateRegistryInput) (*Registry, error) {
	out, err := updateRegistry.run(ctx, c, vars{"input": in})
	return &out.UpdateRegistry.Registry, err
}

var deleteRegistry = define[struct {
	DeleteRegistry struct {
		ID string `json:"id"`
	} `json:"deleteRegistry"`
}](`mutation DeleteRegistry($input: DeleteRegistryInput!) { deleteRegistry(input: $input) { id } }`)

// DeleteRegistry removes a registry and its images.
func (c *Client) DeleteRegistry(ctx context.Context, id string) error {
	_, err := deleteRegistry.run(ctx, c, vars{"input": vars{"id": id}})
	return err
}

// ScanResult is what came of one tag.
type ScanResult struct {
	Reference string    `json:"reference"`
	Image     *ImageRef `json:"image"`
	Error     *string   `json:"error"`
}

var scanRegistry = define[struct {
	ScanRegistry struct {
		Results []ScanResult `json:"results"`
	} `json:"scanRegistry"`
}](`mutation ScanRegistry($input: ScanRegistryInput!) {
  scanRegistry(input: $input) { results { reference image { id reference name } error } }
}`)

// scanTimeout is for a registry with some thousand tags.
const scanTimeout = 10 * time.Minute

// ScanRegistry registers every tag of a registry.
func (c *Client) ScanRegistry(ctx context.Context, id string) ([]ScanResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scanTimeout, fmt.Errorf("scan registry: no end within %s: %w", scanTimeout, context.DeadlineExceeded))
	defer cancel()
	out, err := scanRegistry.run(ctx, c, vars{"input": vars{"id": id}})
	return out.ScanRegistry.Results, err
}
