package client

import (
	"context"
	"time"
)

// OccupancyAudit compares what agents run with what should.
type OccupancyAudit struct {
	At          time.Time        `json:"at"`
	Agents      int              `json:"agents"`
	Silent      []string         `json:"silent"` // names
	Kernels     int              `json:"kernels"`
	Allocations int              `json:"allocations"`
	Drift       []OccupancyDrift `json:"drift"`
}

// OccupancyDrift is one difference.
type OccupancyDrift struct {
	Kind     string  `json:"kind"`
	Agent    string  `json:"agent"`
	Device   string  `json:"device"`
	Kernel   *string `json:"kernel"`
	Session  *string `json:"session"`
	Detail   string  `json:"detail"`
	Repaired bool    `json:"repaired"`
	// Owner and Project of a container that should not be there; empty: unknown.
	Owner   string `json:"owner"`
	Project string `json:"project"`
	// Next says what becomes of it while the cluster is not in recovery mode.
	Next string `json:"next"`
}

const occupancyFields = `fragment occupancyFields on OccupancyAudit {
  at agents silent kernels allocations drift { kind agent device kernel session detail repaired owner project next }
}`

var lookOccupancy = define[struct {
	OccupancyAudit OccupancyAudit `json:"occupancyAudit"`
}](`query OccupancyAudit { occupancyAudit { ...occupancyFields } }`, occupancyFields)

// Occupancy compares without changing anything.
func (c *Client) Occupancy(ctx context.Context) (*OccupancyAudit, error) {
	out, err := lookOccupancy.run(ctx, c, nil)
	return &out.OccupancyAudit, err
}

var auditOccupancy = define[payload[struct {
	Audit OccupancyAudit `json:"audit"`
}]](`mutation AuditOccupancy {
  payload: auditOccupancy { audit { ...occupancyFields } }
}`, occupancyFields)

// AuditOccupancy compares and mends.
func (c *Client) AuditOccupancy(ctx context.Context) (*OccupancyAudit, error) {
	out, err := auditOccupancy.run(ctx, c, nil)
	return &out.Payload.Audit, err
}
