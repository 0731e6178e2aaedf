package client

import (
	"context"
	"time"
)

// Cluster is the state of the whole cluster.
type Cluster struct {
	Led    bool    `json:"led"`
	Leader *Leader `json:"leader"` // nil while no manager leads
	// EvictionsStopped are groups with too many agents out of reach at once.
	EvictionsStopped []struct {
		ResourceGroup string `json:"resourceGroup"`
		Unreachable   int    `json:"unreachable"`
		Agents        int    `json:"agents"`
	} `json:"evictionsStopped"`
	Recovery *Recovery `json:"recovery"` // nil while the cluster is not in recovery mode
}

// Recovery is the recovery mode while it is on.
type Recovery struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// Leader is the manager that schedules.
type Leader struct {
	ID      string    `json:"id"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
	Epoch   int64     `json:"epoch"`
}

var showCluster = define[struct {
	Cluster Cluster `json:"cluster"`
}](`query Cluster { cluster { led leader { id address since epoch } evictionsStopped { resourceGroup unreachable agents } recovery { since reason } } }`)

// Cluster returns the state of the whole cluster.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	out, err := showCluster.run(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	return &out.Cluster, nil
}

var setRecovery = define[payload[struct {
	Recovery *Recovery `json:"recovery"`
}]](`mutation SetRecovery($input: SetRecoveryInput!) { payload: setRecovery(input: $input) { recovery { since reason } } }`)

// SetRecovery turns the recovery mode on or off.
func (c *Client) SetRecovery(ctx context.Context, on bool, reason string) (*Recovery, error) {
	input := vars{"on": on}
	if reason != "" {
		input["reason"] = reason
	}
	out, err := setRecovery.run(ctx, c, vars{"input": input})
	if err != nil {
		return nil, err
	}
	return out.Payload.Recovery, nil
}
