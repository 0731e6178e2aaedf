package client

import (
	"context"
	"time"
)

// Cluster is the state of the whole cluster, with the programs of its agents.
type Cluster struct {
	Overview
	Agents []AgentVersion `json:"agents"`
}

// Overview is what managers know of themselves and of the cluster.
type Overview struct {
	Led    bool    `json:"led"`
	Leader *Leader `json:"leader"` // nil while no manager leads
	// EvictionsStopped are groups with too many agents out of reach at once.
	EvictionsStopped []struct {
		ResourceGroup string `json:"resourceGroup"`
		Unreachable   int    `json:"unreachable"`
		Agents        int    `json:"agents"`
	} `json:"evictionsStopped"`
	Managers       []ClusterManager `json:"managers"`
	StorageProxies []StorageProxy   `json:"storageProxies"`
	Recovery       *Recovery        `json:"recovery"` // nil while the cluster is not in recovery mode
}

// Recovery is the recovery mode while it is on.
type Recovery struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

// AgentVersion says which programs run on a machine.
type AgentVersion struct {
	Name       string    `json:"name"`
	Status     string    `json:"status"`
	Version    string    `json:"version"`
	LastSeenAt time.Time `json:"lastSeenAt"`
	Plugins    []struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		State   string `json:"state"`
	} `json:"plugins"`
}

var listVersions = define[struct {
	Agents connection[AgentVersion] `json:"agents"`
}](`query Versions($first: Int, $after: Cursor) {
  agents(first: $first, after: $after, orderBy: [{ field: NAME }]) {
    edges { node { name status version lastSeenAt plugins { name version state } } } pageInfo { hasNextPage endCursor }
  }
}`)

// ClusterManager is a manager that is alive.
type ClusterManager struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Version string `json:"version"` // empty: too old to say it
	Leads   bool   `json:"leads"`
}

// StorageProxy is one that has joined.
type StorageProxy struct {
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	PublicURL  string    `json:"publicURL"`
	LastSeenAt time.Time `json:"lastSeenAt"`
}

// Leader is the manager that schedules.
type Leader struct {
	ID      string    `json:"id"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
	Epoch   int64     `json:"epoch"`
}

var showCluster = define[struct {
	Cluster Overview `json:"cluster"`
}](`query Cluster { cluster { led leader { id address since epoch } evictionsStopped { resourceGroup unreachable agents } managers { id address version leads } storageProxies { name version publicURL lastSeenAt } recovery { since reason } } }`)

// Cluster returns the state of the whole cluster.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	out, err := showCluster.run(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	agents, err := collect(0, vars{}, func(v vars) (connection[AgentVersion], error) {
		out, err := listVersions.run(ctx, c, v)
		return out.Agents, err
	})
	return &Cluster{Overview: out.Cluster, Agents: agents}, err
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
