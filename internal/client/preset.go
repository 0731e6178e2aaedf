package client

import (
	"context"

	"github.com/berthhq/berth/internal/resource"
)

// Preset is a named request of slots.
type Preset struct {
	ID            string         `json:"id"`
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	Slots         resource.Slots `json:"slots"`
	ShmBytes      int64          `json:"shmBytes"`
	ResourceGroup *Ref           `json:"resourceGroup"`
}

// FittingPreset is a preset and how soon it could start for the one who asks.
type FittingPreset struct {
	Preset
	Fit struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"fit"`
}

const presetFields = `fragment presetFields on ResourcePreset {
  id name description slots shmBytes resourceGroup { id name }
}`

var listPresets = define[struct {
	ResourcePresets []FittingPreset `json:"resourcePresets"`
}](`query ResourcePresets($resourceGroup: ID, $project: ID) {
  resourcePresets(resourceGroup: $resourceGroup) {
    ...presetFields fit(resourceGroup: $resourceGroup, project: $project) { state reason }
  }
}`, presetFields)

// Presets lists those for all groups and those of the given one, and how they
// fit in the project; by ids.
func (c *Client) Presets(ctx context.Context, group, project string) ([]FittingPreset, error) {
	v := vars{}
	put(v, "resourceGroup", group)
	put(v, "project", project)
	out, err := listPresets.run(ctx, c, v)
	return out.ResourcePresets, err
}

// CreatePresetInput is a new preset; ResourceGroup is an id, "" for all.
type CreatePresetInput struct {
	Name          string         `json:"name"`
	Description   string         `json:"description,omitempty"`
	Slots         resource.Slots `json:"slots"`
	ShmBytes      *int64         `json:"shmBytes,omitempty"`
	ResourceGroup string         `json:"resourceGroup,omitempty"`
}

type presetPayload struct {
	Preset Preset `json:"preset"`
}

var createPreset = define[payload[presetPayload]](`mutation CreateResourcePreset($input: CreateResourcePresetInput!) {
  payload: createResourcePreset(input: $input) { preset { ...presetFields } }
}`, presetFields)

// CreatePreset makes a preset.
func (c *Client) CreatePreset(ctx context.Context, in CreatePresetInput) (*Preset, error) {
	out, err := change(ctx, c, createPreset, in)
	return &out.Preset, err
}

// UpdatePresetInput changes what is set.
type UpdatePresetInput struct {
	ID          string          `json:"id"`
	Name        *string         `json:"name,omitempty"`
	Description *string         `json:"description,omitempty"`
	Slots       *resource.Slots `json:"slots,omitempty"`
	ShmBytes    *int64          `json:"shmBytes,omitempty"`
}

var updatePreset = define[payload[presetPayload]](`mutation UpdateResourcePreset($input: UpdateResourcePresetInput!) {
  payload: updateResourcePreset(input: $input) { preset { ...presetFields } }
}`, presetFields)

// UpdatePreset changes a preset.
func (c *Client) UpdatePreset(ctx context.Context, in UpdatePresetInput) (*Preset, error) {
	out, err := change(ctx, c, updatePreset, in)
	return &out.Preset, err
}

var deletePreset = define[payload[idOf]](`mutation DeleteResourcePreset($input: DeleteResourcePresetInput!) {
  payload: deleteResourcePreset(input: $input) { id }
}`)

// DeletePreset removes a preset.
func (c *Client) DeletePreset(ctx context.Context, id string) error {
	_, err := change(ctx, c, deletePreset, idOf{id})
	return err
}
