package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Shares is how a resource group is divided.
type Shares struct {
	Weights []ShareWeight `json:"shareWeights"`
	Holders []ShareHolder `json:"shareHolders"`
}

// ShareWeight is the part of one domain, project or user, in one group or in all.
type ShareWeight struct {
	ID            string    `json:"id"`
	Weight        float64   `json:"weight"`
	ResourceGroup *Ref      `json:"resourceGroup"`
	Domain        *Ref      `json:"domain"`
	Project       *Ref      `json:"project"`
	User          *UserRef  `json:"user"`
	WithinProject *Ref      `json:"withinProject"`
	CreatedAt     time.Time `json:"createdAt"`
}

// ShareHolder is how a domain, project or user stands beside others at its level;
// it comes with those that it is in.
type ShareHolder struct {
	Scope   string         `json:"scope"`
	Domain  *Ref           `json:"domain"`
	Project *Ref           `json:"project"`
	User    *UserRef       `json:"user"`
	Weight  float64        `json:"weight"`
	Due     float64        `json:"due"`   // its part by weight
	Usage   float64        `json:"usage"` // 1: the whole group for all of the lookback
	Used    float64        `json:"used"`  // its part of what was used
	Factor  float64        `json:"factor"`
	Held    resource.Slots `json:"held"`
	Waiting int            `json:"waiting"`
}

const shareWeightFields = `fragment shareWeightFields on ShareWeight {
  id weight resourceGroup { id name } domain { id name } project { id name } user { id email } withinProject { id name } createdAt
}`

var groupShares = define[struct {
	Node *Shares `json:"node"`
}](`query ResourceGroupShares($id: ID!) {
  node(id: $id) { ... on ResourceGroup {
    shareWeights { ...shareWeightFields }
    shareHolders { scope domain { id name } project { id name } user { id email } weight due usage used factor held waiting }
  } }
}`, shareWeightFields)

// GroupShares tells how a group is divided, as far as one may know.
func (c *Client) GroupShares(ctx context.Context, group string) (*Shares, error) {
	out, err := groupShares.run(ctx, c, vars{"id": group})
	if err == nil && out.Node == nil {
		err = notFound("resource group", group)
	}
	return out.Node, err
}

// ShareInput is the weight of a holder, in one group or without one in all; of a
// user also within one project.
type ShareInput struct {
	Weight        float64 `json:"weight"`
	Domain        string  `json:"domain,omitempty"`
	Project       string  `json:"project,omitempty"`
	User          string  `json:"user,omitempty"`
	ResourceGroup string  `json:"resourceGroup,omitempty"`
	WithinProject string  `json:"withinProject,omitempty"`
}

var setShareWeight = define[payload[struct {
	ShareWeight ShareWeight `json:"shareWeight"`
}]](`mutation SetShareWeight($input: SetShareWeightInput!) {
  payload: setShareWeight(input: $input) { shareWeight { ...shareWeightFields } }
}`, shareWeightFields)

// SetShareWeight weighs a holder, in place of the weight it has there.
func (c *Client) SetShareWeight(ctx context.Context, in ShareInput) (*ShareWeight, error) {
	out, err := change(ctx, c, setShareWeight, in)
	return &out.ShareWeight, err
}

var removeShareWeight = define[payload[idOf]](`mutation RemoveShareWeight($input: RemoveShareWeightInput!) {
  payload: removeShareWeight(input: $input) { id }
}`)

// RemoveShareWeight takes a weight away by its id.
func (c *Client) RemoveShareWeight(ctx context.Context, id string) error {
	_, err := change(ctx, c, removeShareWeight, idOf{id})
	return err
}
