package client

import (
	"context"
)

// Presets lists the presets for all resource groups and those of group, with the time at which
// each could start in project. Both are ids.
func (c *Client) Presets(ctx context.Context, group, project string) ([]FittingPreset, error) {
	return collect(0, func(first *int, after string) (*queryResourcePresetsResourcePresetsResourcePresetConnection, error) {
		out, err := queryResourcePresets(ctx, c, group, project, first, after)
		return &out.ResourcePresets, err
	})
}

// CreatePreset creates a preset.
func (c *Client) CreatePreset(ctx context.Context, in CreateResourcePresetInput) (*Preset, error) {
	out, err := createResourcePreset(ctx, c, in)
	return &out.Payload.Preset, err
}

// UpdatePreset changes a preset.
func (c *Client) UpdatePreset(ctx context.Context, in UpdateResourcePresetInput) (*Preset, error) {
	out, err := updateResourcePreset(ctx, c, in)
	return &out.Payload.Preset, err
}

// DeletePreset removes a preset.
func (c *Client) DeletePreset(ctx context.Context, id string) error {
	_, err := deleteResourcePreset(ctx, c, DeleteResourcePresetInput{ID: id})
	return err
}
