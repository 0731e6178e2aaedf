package client

import "context"

// Agents lists the agents that the viewer can see; name "" means all.
func (c *Client) Agents(ctx context.Context, name string) ([]Agent, error) {
	return collect(0, func(first *int, after string) (*queryAgentsAgentsAgentConnection, error) {
		out, err := queryAgents(ctx, c, first, after, nameIs(name))
		return &out.Agents, err
	})
}

// AgentLoads lists agents as Agents does, with their newest samples.
func (c *Client) AgentLoads(ctx context.Context) ([]AgentLoad, error) {
	return collect(0, func(first *int, after string) (*queryAgentLoadsAgentsAgentConnection, error) {
		out, err := queryAgentLoads(ctx, c, first, after, Where{})
		return &out.Agents, err
	})
}

// Agent reads one agent by id.
func (c *Client) Agent(ctx context.Context, id string) (*AgentDetail, error) {
	out, err := queryAgent(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("agent", id)
	}
	return out.Node, nil
}

// Cordon stops new sessions from starting on an agent.
func (c *Client) Cordon(ctx context.Context, id, reason string) (*Agent, error) {
	out, err := updateAgent(ctx, c, UpdateAgentInput{ID: id, Schedulable: new(false), CordonReason: new(reason)})
	return &out.UpdateAgent.Agent, err
}

// Uncordon lets sessions start on an agent again.
func (c *Client) Uncordon(ctx context.Context, id string) (*Agent, error) {
	out, err := updateAgent(ctx, c, UpdateAgentInput{ID: id, Schedulable: new(true)})
	return &out.UpdateAgent.Agent, err
}

// MoveAgent moves an agent to another resource group. With force, sessions can run on it.
func (c *Client) MoveAgent(ctx context.Context, id, resourceGroup string, force bool) (*Agent, error) {
	out, err := updateAgent(ctx, c, UpdateAgentInput{ID: id, ResourceGroup: resourceGroup, Force: &force})
	return &out.UpdateAgent.Agent, err
}

// Drain cordons an agent, and ends or moves its sessions at the deadline.
func (c *Client) Drain(ctx context.Context, in DrainAgentInput) (*Agent, error) {
	out, err := drainAgent(ctx, c, in)
	return &out.Payload.Agent, err
}

// Undrain ends the drain of an agent.
func (c *Client) Undrain(ctx context.Context, id string) (*Agent, error) {
	out, err := undrainAgent(ctx, c, UndrainAgentInput{ID: id})
	return &out.Payload.Agent, err
}

// RestartPlugin restarts the process of a plugin on an agent.
func (c *Client) RestartPlugin(ctx context.Context, id, plugin string) error {
	_, err := restartPlugin(ctx, c, RestartPluginInput{ID: id, Plugin: plugin})
	return err
}

// DeleteAgent removes a lost agent. With expel its certificate is refused too, and the agent
// can be alive.
func (c *Client) DeleteAgent(ctx context.Context, id string, expel bool) (*Agent, error) {
	out, err := deleteAgent(ctx, c, DeleteAgentInput{ID: id, Expel: expel})
	return &out.Payload.Agent, err
}

// DeleteStorageProxy permanently removes a storage proxy.
func (c *Client) DeleteStorageProxy(ctx context.Context, name string) error {
	_, err := deleteStorageProxy(ctx, c, DeleteStorageProxyInput{Name: name})
	return err
}

// CreateJoinToken creates a token for a machine of the role AGENT or STORAGE.
func (c *Client) CreateJoinToken(ctx context.Context, role Enum) (*JoinToken, error) {
	out, err := createJoinToken(ctx, c, CreateJoinTokenInput{Role: role})
	return &out.CreateJoinToken, err
}

// SlotTypes lists the slots of the cluster.
func (c *Client) SlotTypes(ctx context.Context) ([]SlotType, error) {
	out, err := querySlotTypes(ctx, c)
	return out.SlotTypes, err
}

// Devices reads the details of the devices of an agent. Their links, of which there can be
// thousands, are read only with links.
func (c *Client) Devices(ctx context.Context, agent string, links bool) ([]DeviceDetail, error) {
	out, err := queryAgentDevices(ctx, c, agent, links)
	if err != nil {
		return nil, err
	}
	if out.Node == nil {
		return nil, notFound("agent", agent)
	}
	return out.Node.Devices, nil
}

// AgentByName returns the agent with a name.
func (c *Client) AgentByName(ctx context.Context, name string) (*Agent, error) {
	out, err := queryAgentByName(ctx, c, name)
	if err == nil && out.Agent == nil {
		return nil, notFound("agent", name)
	}
	return out.Agent, err
}

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

// Occupancy compares agents and database without a change.
func (c *Client) Occupancy(ctx context.Context) (*OccupancyAudit, error) {
	out, err := queryOccupancyAudit(ctx, c)
	return &out.OccupancyAudit, err
}

// AuditOccupancy compares agents and database, and repairs the differences.
func (c *Client) AuditOccupancy(ctx context.Context) (*OccupancyAudit, error) {
	out, err := auditOccupancy(ctx, c)
	return &out.Payload.Audit, err
}

// Diagnosis looks for faults of the cluster.
func (c *Client) Diagnosis(ctx context.Context) (*Diagnosis, error) {
	out, err := queryDiagnosis(ctx, c)
	return &out.Diagnosis, err
}
