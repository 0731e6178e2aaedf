package launch

import (
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
)

// Observation is the state of a kernel as reported by one agent.
type Observation struct {
	Agent uuid.UUID
	*agentpb.KernelState
}

// Observations are the latest states of kernels as agents reported them. The reports of one agent
// do not hide those of another one: after a partition, two agents can have a container of the same
// kernel.
type Observations struct {
	mu sync.Mutex
	m  map[uuid.UUID]map[uuid.UUID]Observation // kernel, agent
}

// NewObservations returns an empty set.
func NewObservations() *Observations {
	return &Observations{m: map[uuid.UUID]map[uuid.UUID]Observation{}}
}

// Put stores a state unless a later state of the same or of a later launch is stored.
func (o *Observations) Put(kernel uuid.UUID, next Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, ok := o.m[kernel][next.Agent]
	if ok && (old.LaunchEpoch > next.LaunchEpoch || old.LaunchEpoch == next.LaunchEpoch && old.Phase > next.Phase) {
		return
	}
	if o.m[kernel] == nil {
		o.m[kernel] = map[uuid.UUID]Observation{}
	}
	o.m[kernel][next.Agent] = next
}

// Current returns the state of a kernel's present launch on the agent where
// it is placed.
func (o *Observations) Current(k *ent.Kernel) (Observation, bool) {
	if k.AgentID == nil {
		return Observation{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	ob, ok := o.m[k.ID][*k.AgentID]
	return ob, ok && ob.LaunchEpoch == k.LaunchEpoch
}

// All returns the reports of all agents about a kernel.
func (o *Observations) All(kernel uuid.UUID) []Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.m[kernel]))
}

// Drop removes the report of an agent about a kernel.
func (o *Observations) Drop(kernel, agent uuid.UUID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m[kernel], agent)
	if len(o.m[kernel]) == 0 {
		delete(o.m, kernel)
	}
}
