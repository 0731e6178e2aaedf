package client

import (
	"context"
)

// GroupShares returns the fair shares of a resource group that the viewer can see.
func (c *Client) GroupShares(ctx context.Context, group string) (*Shares, error) {
	out, err := queryResourceGroupShares(ctx, c, group)
	if err == nil && out.Node == nil {
		err = notFound("resource group", group)
	}
	return out.Node, err
}

// SetShareWeight sets the weight of a holder.
func (c *Client) SetShareWeight(ctx context.Context, in SetShareWeightInput) (*ShareWeight, error) {
	out, err := setShareWeight(ctx, c, in)
	return &out.Payload.ShareWeight, err
}

// DeleteShareWeight removes a weight by its id.
func (c *Client) DeleteShareWeight(ctx context.Context, id string) error {
	_, err := deleteShareWeight(ctx, c, DeleteShareWeightInput{ID: id})
	return err
}
