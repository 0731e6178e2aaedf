package client

import (
	"context"
)

// Cluster is the state of the whole cluster, with the programs of its agents.
type Cluster struct {
	Overview
	Agents []AgentVersion `json:"agents"`
}

// Cluster returns the state of the whole cluster.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	out, err := queryCluster(ctx, c)
	if err != nil {
		return nil, err
	}
	agents, err := collect(0, func(first *int, after string) (*queryVersionsAgentsAgentConnection, error) {
		out, err := queryVersions(ctx, c, first, after)
		return &out.Agents, err
	})
	return &Cluster{Overview: out.Cluster, Agents: agents}, err
}

// SetRecovery turns the recovery mode on or off.
func (c *Client) SetRecovery(ctx context.Context, on bool, reason string) (*Recovery, error) {
	out, err := setRecovery(ctx, c, SetRecoveryInput{On: on, Reason: reason})
	return out.Payload.Recovery, err
}

// Occupancy compares agents and database, and changes nothing.
func (c *Client) Occupancy(ctx context.Context) (*OccupancyAudit, error) {
	out, err := queryOccupancyAudit(ctx, c)
	return &out.OccupancyAudit, err
}

// AuditOccupancy compares agents and database, and repairs the differences.
func (c *Client) AuditOccupancy(ctx context.Context) (*OccupancyAudit, error) {
	out, err := auditOccupancy(ctx, c)
	return &out.Payload.Audit, err
}
