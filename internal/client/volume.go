package client

import "context"

// Volume is a place where folders live.
type Volume struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Backend       string `json:"backend"`
	Health        string `json:"health"`
	HealthMessage string `json:"healthMessage"`
	TotalBytes    int64  `json:"totalBytes"`
	UsedBytes     int64  `json:"usedBytes"`
}

var listVolumes = define[struct {
	Volumes []Volume `json:"volumes"`
}](`query Volumes { volumes { id name backend health healthMessage totalBytes usedBytes } }`)

// Volumes lists the places where folders can live.
func (c *Client) Volumes(ctx context.Context) ([]Volume, error) {
	out, err := listVolumes.run(ctx, c, nil)
	return out.Volumes, err
}

// VolumeGrant is what folders of a volume may be used for by one domain,
// project or user, or by everyone.
type VolumeGrant struct {
	ID          string   `json:"id"`
	Everybody   bool     `json:"everybody"`
	Domain      *Ref     `json:"domain"`
	Project     *Ref     `json:"project"`
	User        *UserRef `json:"user"`
	Permissions []string `json:"permissions"`
}

const volumeGrantFields = `fragment volumeGrantFields on VolumeGrant {
  id everybody domain { id name } project { id name } user { id email } permissions
}`

var listVolumeGrants = define[struct {
	Node *struct {
		ID     string        `json:"id"`
		Grants []VolumeGrant `json:"grants"`
	} `json:"node"`
}](`query VolumeGrants($id: ID!) {
  node(id: $id) { ... on Volume { id grants { ...volumeGrantFields } } }
}`, volumeGrantFields)

// VolumeGrants lists the grants of a volume by its id.
func (c *Client) VolumeGrants(ctx context.Context, volume string) ([]VolumeGrant, error) {
	out, err := listVolumeGrants.run(ctx, c, vars{"id": volume})
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("volume", volume)
	}
	return out.Node.Grants, nil
}

// VolumeGrantInput replaces what a holder may do; none of domain, project and
// user means everyone.
type VolumeGrantInput struct {
	Volume      string   `json:"volume"`
	Domain      string   `json:"domain,omitempty"`
	Project     string   `json:"project,omitempty"`
	User        string   `json:"user,omitempty"`
	Permissions []string `json:"permissions"`
}

var setVolumeGrant = define[payload[struct {
	Grant VolumeGrant `json:"grant"`
}]](`mutation SetVolumeGrant($input: SetVolumeGrantInput!) {
  payload: setVolumeGrant(input: $input) { grant { ...volumeGrantFields } }
}`, volumeGrantFields)

// SetVolumeGrant says what a holder may use a volume for.
func (c *Client) SetVolumeGrant(ctx context.Context, in VolumeGrantInput) (*VolumeGrant, error) {
	out, err := change(ctx, c, setVolumeGrant, in)
	return &out.Grant, err
}

var removeVolumeGrant = define[payload[struct {
	Volume Ref `json:"volume"`
}]](`mutation RemoveVolumeGrant($input: RemoveVolumeGrantInput!) {
  payload: removeVolumeGrant(input: $input) { volume { id name } }
}`)

// RemoveVolumeGrant takes a grant away by its id.
func (c *Client) RemoveVolumeGrant(ctx context.Context, grant string) error {
	_, err := change(ctx, c, removeVolumeGrant, idOf{grant})
	return err
}
