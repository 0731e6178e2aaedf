package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Device is one schedulable unit.
type Device struct {
	ID            string            `json:"id"`
	DeviceID      string            `json:"deviceId"`
	Plugin        string            `json:"plugin"`
	Vendor        string            `json:"vendor"`
	Model         string            `json:"model"`
	Capacity      resource.Slots    `json:"capacity"`
	Occupied      resource.Slots    `json:"occupied"`
	Attributes    map[string]string `json:"attributes"`
	NUMANode      *int              `json:"numaNode"`
	Health        string            `json:"health"`
	HealthMessage string            `json:"healthMessage"`
	Allocatable   bool              `json:"allocatable"`
	RejectReasons []string          `json:"rejectReasons"`
	Holders       []struct {
		Slot    string    `json:"slot"`
		Amount  string    `json:"amount"`
		Since   time.Time `json:"since"`
		Session *Ref      `json:"session"`
		Mine    bool      `json:"mine"`
	} `json:"holders"`
}

const deviceFields = `fragment deviceFields on Device {
  id deviceId plugin vendor model capacity occupied attributes numaNode
  health healthMessage allocatable rejectReasons
  holders { slot amount since session { id name } mine }
}`

// DeviceDetail is a device with where it sits, what it is cut from or shares, and
// its latest samples.
type DeviceDetail struct {
	Device
	PCIAddress      string   `json:"pciAddress"`
	PCIeRoot        string   `json:"pcieRoot"`
	MemoryBytes     int64    `json:"memoryBytes"`
	ProcessingUnits int      `json:"processingUnits"`
	Groups          []string `json:"groups"`
	Enforcement     string   `json:"enforcement"`
	Parent          *struct {
		ID       string `json:"id"`
		DeviceID string `json:"deviceId"`
	} `json:"parent"`
	Links []struct {
		PeerID   string  `json:"peerId"`
		Type     string  `json:"type"`
		Distance int     `json:"distance"`
		Gbps     float64 `json:"gbps"`
		P2P      bool    `json:"p2p"`
	} `json:"links"`
	Counters []struct {
		Set    string `json:"set"`
		Name   string `json:"name"`
		Amount int64  `json:"amount"`
		Total  int64  `json:"total"`
	} `json:"counters"`
	Metrics []Metric `json:"metrics"`
}

var agentDevices = define[struct {
	Node *struct {
		Devices []DeviceDetail `json:"devices"`
	} `json:"node"`
}](`query AgentDevices($id: ID!, $links: Boolean!) {
  node(id: $id) { ... on Agent {
    devices {
      ...deviceFields
      pciAddress pcieRoot memoryBytes processingUnits groups enforcement parent { id deviceId }
      links @include(if: $links) { peerId type distance gbps p2p }
      counters { set name amount total } metrics { ...metricFields }
    }
  } }
}`, deviceFields, metricFields)

// Devices reads all there is to know of the devices of an agent; their links, of
// which there may be thousands, only where they are wanted.
func (c *Client) Devices(ctx context.Context, agent string, links bool) ([]DeviceDetail, error) {
	out, err := agentDevices.run(ctx, c, vars{"id": agent, "links": links})
	if err != nil {
		return nil, err
	}
	if out.Node == nil {
		return nil, notFound("agent", agent)
	}
	return out.Node.Devices, nil
}
