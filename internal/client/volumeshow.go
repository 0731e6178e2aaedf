package client

import (
	"context"
	"time"
)

// VolumeDetails is a volume as administrators see it; nil is not known.
type VolumeDetails struct {
	Volume
	Capabilities  []string           `json:"capabilities"`
	Enforcement   string             `json:"enforcement"`
	Elastic       bool               `json:"elastic"`
	TotalInodes   *int64             `json:"totalInodes"`
	UsedInodes    *int64             `json:"usedInodes"`
	MyPermissions []string           `json:"myPermissions"`
	Proxy         string             `json:"proxy"`
	Performance   *VolumePerformance `json:"performance"`
	Grants        []VolumeGrant      `json:"grants"`
}

// VolumePerformance are rates over a window; nil is not known.
type VolumePerformance struct {
	WholeCluster        bool      `json:"wholeCluster"`
	At                  time.Time `json:"at"`
	WindowSeconds       float64   `json:"windowSeconds"`
	ReadOpsPerSecond    *float64  `json:"readOpsPerSecond"`
	WriteOpsPerSecond   *float64  `json:"writeOpsPerSecond"`
	ReadBytesPerSecond  *float64  `json:"readBytesPerSecond"`
	WriteBytesPerSecond *float64  `json:"writeBytesPerSecond"`
	ReadLatencyMicros   *float64  `json:"readLatencyMicros"`
	WriteLatencyMicros  *float64  `json:"writeLatencyMicros"`
}

var listVolumeDetails = define[struct {
	Volumes []VolumeDetails `json:"volumes"`
}](`query VolumeDetails { volumes {
  id name backend health healthMessage capabilities totalBytes usedBytes totalInodes usedInodes elastic enforcement myPermissions proxy
  performance { wholeCluster at windowSeconds readOpsPerSecond writeOpsPerSecond readBytesPerSecond writeBytesPerSecond readLatencyMicros writeLatencyMicros }
  grants { ...volumeGrantFields }
} }`, volumeGrantFields)

// VolumeDetails lists all that administrators see of volumes.
func (c *Client) VolumeDetails(ctx context.Context) ([]VolumeDetails, error) {
	out, err := listVolumeDetails.run(ctx, c, nil)
	return out.Volumes, err
}

// VolumeOrphans is how what lies on a volume differs from what is known.
type VolumeOrphans struct {
	Scopes   []OrphanScope  `json:"scopes"`
	Folders  []OrphanFolder `json:"folders"`
	Missing  []Folder       `json:"missing"`
	Complete bool           `json:"complete"`
}

// OrphanScope is a quota scope that no one has.
type OrphanScope struct {
	Scope     string `json:"scope"`
	UsedBytes *int64 `json:"usedBytes"`
}

// OrphanFolder lies where folders do and is none that is known; a stray one, which no
// proxy made, has no ids.
type OrphanFolder struct {
	State  string `json:"state"`
	Scope  string `json:"scope"`
	Folder string `json:"folder"`
	Path   string `json:"path"`
}

var listOrphans = define[struct {
	Node *struct {
		Orphans VolumeOrphans `json:"orphans"`
	} `json:"node"`
}](`query VolumeOrphans($id: ID!) {
  node(id: $id) { ... on Volume { orphans {
    complete scopes { scope usedBytes } folders { state scope folder path } missing { ...folderFields }
  } } }
}`, folderFields)

// VolumeOrphans looks for what lies on a volume, by its id, and no one has.
func (c *Client) VolumeOrphans(ctx context.Context, volume string) (*VolumeOrphans, error) {
	out, err := listOrphans.run(ctx, c, vars{"id": volume})
	if err != nil {
		return nil, err
	}
	if out.Node == nil {
		return nil, notFound("volume", volume)
	}
	return &out.Node.Orphans, nil
}

var removeOrphan = define[payload[taskPayload]](`mutation RemoveOrphan($input: RemoveOrphanInput!) {
  payload: removeOrphan(input: $input) { task { ...taskFields } }
}`, taskFields)

// RemoveOrphan begins to delete an orphaned folder forever or, with folder "", an
// orphaned quota scope.
func (c *Client) RemoveOrphan(ctx context.Context, volume, scope, folder string) (*Task, error) {
	input := vars{"volume": volume, "scope": scope}
	put(input, "folder", folder)
	out, err := change(ctx, c, removeOrphan, input)
	return &out.Task, err
}
