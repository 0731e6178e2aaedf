package client

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/containerd/errdefs"
)

// Agent is one worker machine.
type Agent struct {
	ID            string         `json:"id"`
	Name          string         `json:"name"`
	Status        string         `json:"status"`
	Schedulable   bool           `json:"schedulable"`
	CordonReason  string         `json:"cordonReason"`
	DrainDeadline *time.Time     `json:"drainDeadline"`
	DrainAction   *string        `json:"drainAction"`
	Drained       bool           `json:"drained"`
	SessionsLeft  int            `json:"sessionsLeft"`
	LostAt        *time.Time     `json:"lostAt"`
	Version       string         `json:"version"`
	Architecture  string         `json:"architecture"`
	Address       string         `json:"address"`
	FirstSeenAt   time.Time      `json:"firstSeenAt"`
	LastSeenAt    time.Time      `json:"lastSeenAt"`
	ResourceGroup Ref            `json:"resourceGroup"`
	Capacity      resource.Slots `json:"capacity"`
	Occupied      resource.Slots `json:"occupied"`
	// Conditions are what the machine is checked for; while one holds, nothing new
	// is placed there.
	Conditions []Condition `json:"conditions"`
}

// Condition is one check of an agent's machine.
type Condition struct {
	Type   string    `json:"type"`
	Status bool      `json:"status"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

const agentFields = `fragment agentFields on Agent {
  id name status schedulable cordonReason drainDeadline drainAction drained sessionsLeft lostAt version architecture address firstSeenAt lastSeenAt
  resourceGroup { id name } capacity occupied conditions { type status reason since }
}`

// AgentDetail is an agent with what it is made of.
type AgentDetail struct {
	Agent
	Devices []Device `json:"devices"`
	Plugins []struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		State    string `json:"state"`
		Message  string `json:"message"`
		Restarts int    `json:"restarts"`
		Checks   []struct {
			Name  string `json:"name"`
			Level string `json:"level"`
			Text  string `json:"text"`
		} `json:"checks"`
	} `json:"plugins"`
	Probes []struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
	} `json:"probes"`
	Stats []Metric `json:"stats"`
}

var listAgents = define[struct {
	Agents connection[Agent] `json:"agents"`
}](`query Agents($first: Int, $after: Cursor, $where: AgentWhereInput) {
  agents(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...agentFields } } pageInfo { hasNextPage endCursor }
  }
}`, agentFields)

// Agents lists agents in sight; name "" means all.
func (c *Client) Agents(ctx context.Context, name string) ([]Agent, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Agent], error) {
		out, err := listAgents.run(ctx, c, v)
		return out.Agents, err
	})
}

var showAgent = define[struct {
	Node *AgentDetail `json:"node"`
}](`query Agent($id: ID!) {
  node(id: $id) { ... on Agent {
    ...agentFields
    devices { ...deviceFields }
    plugins { name version state message restarts checks { name level text } }
    probes { name ok detail }
    stats { ...metricFields }
  } }
}`, agentFields, deviceFields, metricFields)

// Agent reads one agent by id.
func (c *Client) Agent(ctx context.Context, id string) (*AgentDetail, error) {
	out, err := showAgent.run(ctx, c, vars{"id": id})
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("agent", id)
	}
	return out.Node, nil
}

var updateAgent = define[struct {
	UpdateAgent struct {
		Agent Agent `json:"agent"`
	} `json:"updateAgent"`
}](`mutation UpdateAgent($input: UpdateAgentInput!) {
  updateAgent(input: $input) { agent { ...agentFields } }
}`, agentFields)

// Cordon lets nothing new start on an agent.
func (c *Client) Cordon(ctx context.Context, id, reason string) (*Agent, error) {
	out, err := updateAgent.run(ctx, c, vars{"input": vars{"id": id, "schedulable": false, "cordonReason": reason}})
	return &out.UpdateAgent.Agent, err
}

// Uncordon lets sessions start on an agent again.
func (c *Client) Uncordon(ctx context.Context, id string) (*Agent, error) {
	out, err := updateAgent.run(ctx, c, vars{"input": vars{"id": id, "schedulable": true}})
	return &out.UpdateAgent.Agent, err
}

// MoveAgent puts an agent into another resource group. With force it does so although
// sessions run on the agent.
func (c *Client) MoveAgent(ctx context.Context, id, resourceGroup string, force bool) (*Agent, error) {
	in := vars{"id": id, "resourceGroup": resourceGroup}
	if force {
		in["force"] = true
	}
	out, err := updateAgent.run(ctx, c, vars{"input": in})
	return &out.UpdateAgent.Agent, err
}

type agentPayload struct {
	Agent Agent `json:"agent"`
}

// DrainInput says until when sessions may stay on an agent, After in seconds, and
// what becomes of them then: reschedule or terminate.
type DrainInput struct {
	ID     string `json:"id"`
	After  int    `json:"after"`
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
}

var drainAgent = define[payload[agentPayload]](`mutation DrainAgent($input: DrainAgentInput!) {
  payload: drainAgent(input: $input) { agent { ...agentFields } }
}`, agentFields)

// Drain lets nothing new land on an agent, and empties it at the deadline.
func (c *Client) Drain(ctx context.Context, in DrainInput) (*Agent, error) {
	out, err := change(ctx, c, drainAgent, in)
	return &out.Agent, err
}

var undrainAgent = define[payload[agentPayload]](`mutation UndrainAgent($input: UndrainAgentInput!) {
  payload: undrainAgent(input: $input) { agent { ...agentFields } }
}`, agentFields)

// Undrain ends the drain of an agent.
func (c *Client) Undrain(ctx context.Context, id string) (*Agent, error) {
	out, err := change(ctx, c, undrainAgent, idOf{id})
	return &out.Agent, err
}

var restartPlugin = define[payload[agentPayload]](`mutation RestartPlugin($input: RestartPluginInput!) {
  payload: restartPlugin(input: $input) { agent { ...agentFields } }
}`, agentFields)

// RestartPlugin ends a plugin's process on an agent and starts it again.
func (c *Client) RestartPlugin(ctx context.Context, id, plugin string) error {
	_, err := change(ctx, c, restartPlugin, vars{"id": id, "plugin": plugin})
	return err
}

var removeAgent = define[payload[agentPayload]](`mutation RemoveAgent($input: RemoveAgentInput!) {
  payload: removeAgent(input: $input) { agent { ...agentFields } }
}`, agentFields)

// RemoveAgent declares a lost agent gone for good; expel refuses its certificate too, also
// while the agent is alive.
func (c *Client) RemoveAgent(ctx context.Context, id string, expel bool) (*Agent, error) {
	type input struct {
		ID    string `json:"id"`
		Expel bool   `json:"expel,omitempty"`
	}
	out, err := change(ctx, c, removeAgent, input{id, expel})
	return &out.Agent, err
}

var removeStorageProxy = define[payload[struct {
	Name string `json:"name"`
}]](`mutation RemoveStorageProxy($input: RemoveStorageProxyInput!) {
  payload: removeStorageProxy(input: $input) { name }
}`)

// RemoveStorageProxy cuts a storage proxy off for good.
func (c *Client) RemoveStorageProxy(ctx context.Context, name string) error {
	_, err := change(ctx, c, removeStorageProxy, vars{"name": name})
	return err
}

// JoinToken lets one machine join.
type JoinToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
	Command   string    `json:"command"`
}

var createJoinToken = define[struct {
	CreateJoinToken JoinToken `json:"createJoinToken"`
}](`mutation CreateJoinToken($input: CreateJoinTokenInput!) {
  createJoinToken(input: $input) { token expiresAt command }
}`)

// CreateJoinToken makes a token for a machine of the role agent or storage.
func (c *Client) CreateJoinToken(ctx context.Context, role string) (*JoinToken, error) {
	out, err := createJoinToken.run(ctx, c, vars{"input": vars{"role": role}})
	return &out.CreateJoinToken, err
}

// SlotType says how a slot counts.
type SlotType struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	DisplayName string `json:"displayName"`
	Unit        string `json:"unit"`
	Quantum     string `json:"quantum"`
}

var listSlotTypes = define[struct {
	SlotTypes []SlotType `json:"slotTypes"`
}](`query SlotTypes { slotTypes { name kind displayName unit quantum } }`)

// SlotTypes lists all slots the cluster knows.
func (c *Client) SlotTypes(ctx context.Context) ([]SlotType, error) {
	out, err := listSlotTypes.run(ctx, c, nil)
	return out.SlotTypes, err
}

func notFound(noun, ref string) error {
	return fmt.Errorf("there is no %s %q: %w", noun, ref, errdefs.ErrNotFound)
}
