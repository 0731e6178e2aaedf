// Package report defines structured reports that are stored as JSON on rows and shown
// unchanged: why a session waits, the steps of an attempt, samples, the state of an agent.
// Nothing is summed from them.
package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// The stages of a waiting session, in this order. It waits at the first stage that it
// does not pass.
const (
	StageGroup  = "group"  // its resource group is deleted or not active
	StageHeld   = "held"   // it waits for a time or for other sessions
	StageLimits = "limits" // a limit of a policy
	StageRoom   = "room"   // no agent has enough free capacity
	StageOrder  = "order"  // agents are reserved for a session ahead of it
)

// Pending is the reason why a session waits, as of the last decision.
type Pending struct {
	Stage     string          `json:"stage"`
	Position  int             `json:"position"`
	DecidedAt time.Time       `json:"decided_at"`
	Summary   string          `json:"summary"`
	Agents    int             `json:"agents"`
	Dropped   []DroppedAgents `json:"dropped"`
	Limits    []LimitReached  `json:"limits"`
	Nearest   *NearestFit     `json:"nearest,omitempty"`
	Order     *Ordering       `json:"order,omitempty"`
	Until     *time.Time      `json:"until,omitempty"` // the time that it waits for, if any
	Holds     int             `json:"holds,omitempty"` // number of agents that are reserved for the session
	// EstimatedStart is the latest start if no other session is placed before it, by
	// the known ends of running sessions. Nil if these are unknown.
	EstimatedStart *time.Time `json:"estimated_start,omitempty"`
	// Room is set while sessions are being ended for it.
	Room *Room `json:"room,omitempty"`
}

// Room is the devices that are freed for a session by ending others of a lower priority.
type Room struct {
	Since    time.Time   `json:"since"`
	Sessions []uuid.UUID `json:"sessions"` // that are ended for it; not shown to users
	Parts    []Part      `json:"parts"`    // that it will get
}

// Part is an amount of a device that a kernel will get.
type Part struct {
	Kernel uuid.UUID `json:"kernel"`
	Device uuid.UUID `json:"device"`
	Slot   string    `json:"slot"`
	Amount int64     `json:"amount"`
}

// Ordering explains the position of a session among those of its priority, if its age
// alone does not decide.
type Ordering struct {
	Order  string     `json:"order"`            // lifo, drf or fair_share
	Levels []Standing `json:"levels,omitempty"` // outermost holder first; none for lifo
}

// Standing is the position of a domain, project or user among its siblings: the one with
// the highest factor, 2^(-usage/weight), goes first.
type Standing struct {
	Scope  string  `json:"scope"`
	Usage  float64 `json:"usage"` // 1: the whole capacity
	Weight float64 `json:"weight"`
	Factor float64 `json:"factor"`
}

// DroppedAgents is the number of agents that one check ruled out.
type DroppedAgents struct {
	Check string `json:"check"`
	Slot  string `json:"slot"`
	Count int    `json:"count"`
	// Why has the reasons that administrators gave, or details, for users.
	Why []string `json:"why,omitempty"`
}

// LimitReached is one limit that keeps a session waiting; amounts are decimals.
type LimitReached struct {
	Scope         string `json:"scope"`
	Holder        string `json:"holder"`         // name of the domain, project, user or keypair
	ResourceGroup string `json:"resource_group"` // that it is restricted to, if any
	WithinProject string `json:"within_project"` // that it is restricted to, if any
	Policy        string `json:"policy"`
	What          string `json:"what"`
	Used          string `json:"used"`
	Requested     string `json:"requested"`
	Limit         string `json:"limit"`
}

// String returns a clause for users.
func (l LimitReached) String() string {
	where := "the " + l.Scope + "'s policy " + l.Policy
	if l.Holder != "" {
		where = "policy " + l.Policy + " of the " + l.Scope + " " + l.Holder
	}
	if l.WithinProject != "" {
		where += " within the project " + l.WithinProject
	}
	if l.ResourceGroup != "" {
		where += " in the resource group " + l.ResourceGroup
	}
	return fmt.Sprintf("%s allows %s %s; %s in use and %s requested", where, l.forPeople(l.Limit), l.What, l.forPeople(l.Used), l.forPeople(l.Requested))
}

// forPeople formats an amount of the limited quantity.
func (l LimitReached) forPeople(amount string) string {
	slot := strings.TrimPrefix(l.What, "pending ")
	if n, err := resource.Parse(slot, amount); err == nil {
		return resource.ForPeople(slot, n)
	}
	return amount
}

// NearestFit is the slot that the agent nearest to a fit lacks.
type NearestFit struct {
	Agent     string `json:"agent"`
	Slot      string `json:"slot"`
	Requested string `json:"requested"`
	Free      string `json:"free"`
}

// Step is one step of an attempt.
type Step struct {
	Name      string    `json:"name"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	OK        bool      `json:"ok"`
	Message   string    `json:"message"`
}

// Metric is one sample of a kernel, a node or a device.
type Metric struct {
	Name     string  `json:"name"`
	DeviceID string  `json:"device_id,omitempty"`
	Value    float64 `json:"value"`
	Capacity float64 `json:"capacity,omitempty"`
	Unit     string  `json:"unit,omitempty"`
	Quality  string  `json:"quality,omitempty"`
}

// Stats are the samples of one moment.
type Stats struct {
	At      time.Time `json:"at"`
	Metrics []Metric  `json:"metrics"`
}

// Plugin is an accelerator plugin as its agent reports it.
type Plugin struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	State    string `json:"state"`
	Message  string `json:"message"`
	Restarts int    `json:"restarts"`
	// Checks are the results of its last preflight.
	Checks []PluginCheck `json:"checks"`
}

// PluginCheck is the result of one check of a plugin's requirements on its host.
type PluginCheck struct {
	Name  string           `json:"name"`
	Level PluginCheckLevel `json:"level"`
	Text  string           `json:"text"`
}

// PluginCheckLevel is the outcome of a check.
type PluginCheckLevel string

// The levels.
const (
	CheckOK      PluginCheckLevel = "ok"
	CheckWarning PluginCheckLevel = "warning" // the devices work without it
	CheckError   PluginCheckLevel = "error"
)

// Probe is the result of an agent's check for one feature of its host.
type Probe struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}
