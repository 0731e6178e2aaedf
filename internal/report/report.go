// Package report holds the structured findings that are kept as JSON on rows and
// shown as they are: why a session waits, what an attempt did, samples of a
// moment, what an agent says of itself. Nothing is ever summed from them.
package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/resource"
)

// The stages that a waiting session goes through, in this order. What it waits
// for is in the first that it does not pass.
const (
	StageGroup  = "group"  // its resource group is gone or shut
	StageHeld   = "held"   // a time or other sessions have to come first
	StageLimits = "limits" // a limit of a policy
	StageRoom   = "room"   // no agent has room
	StageOrder  = "order"  // there is room, and it is held for a session before it
)

// Pending says why a session waits, as of the last decision.
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
	Until     *time.Time      `json:"until,omitempty"` // it waits for a time: this
	Holds     int             `json:"holds,omitempty"` // agents that are held for it
	// EstimatedStart is when it starts at the latest if nothing goes before it:
	// what is in its way has ended by then. Nil where lifetimes do not tell.
	EstimatedStart *time.Time `json:"estimated_start,omitempty"`
	// Room is what ends so that it can start.
	Room *Room `json:"room,omitempty"`
}

// Room is made for a session by ending others of a lower priority.
type Room struct {
	Since    time.Time   `json:"since"`
	Sessions []uuid.UUID `json:"sessions"` // that are ended for it; those that wait must not be told
	Parts    []Part      `json:"parts"`    // that it is to get
}

// Part is what a kernel is to get of a device.
type Part struct {
	Kernel uuid.UUID `json:"kernel"`
	Device uuid.UUID `json:"device"`
	Slot   string    `json:"slot"`
	Amount int64     `json:"amount"`
}

// Ordering says why a session has its place among those of its priority, where
// that is not its age.
type Ordering struct {
	Order  string     `json:"order"`            // lifo, drf or fair_share
	Levels []Standing `json:"levels,omitempty"` // from the outermost holder in; none for lifo
}

// Standing is how one of those that a session counts for stands among its like:
// the highest factor, which is 2^(-usage/weight), goes first.
type Standing struct {
	Scope  string  `json:"scope"`
	Usage  float64 `json:"usage"` // 1: all there is
	Weight float64 `json:"weight"`
	Factor float64 `json:"factor"`
}

// DroppedAgents counts the agents that one check dropped.
type DroppedAgents struct {
	Check string `json:"check"`
	Slot  string `json:"slot"`
	Count int    `json:"count"`
	// Why says more of it to people, where someone gave reasons.
	Why []string `json:"why,omitempty"`
}

// LimitReached is one limit that keeps a session waiting; amounts are decimals.
type LimitReached struct {
	Scope         string `json:"scope"`
	Holder        string `json:"holder"`         // name of the domain, project, user or keypair
	ResourceGroup string `json:"resource_group"` // that it is narrowed to, if any
	WithinProject string `json:"within_project"` // that it is narrowed to, if any
	Policy        string `json:"policy"`
	What          string `json:"what"`
	Used          string `json:"used"`
	Requested     string `json:"requested"`
	Limit         string `json:"limit"`
}

// String is a clause for people.
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

// forPeople prints an amount of what is limited.
func (l LimitReached) forPeople(amount string) string {
	slot := strings.TrimPrefix(l.What, "pending ")
	if n, err := resource.Parse(slot, amount); err == nil {
		return resource.ForPeople(slot, n)
	}
	return amount
}

// NearestFit is what the agent that lacks least lacks.
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
	// Checks are what its preflight found last.
	Checks []PluginCheck `json:"checks"`
}

// PluginCheck is one thing that a plugin needs of its host, and how it is.
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

// Probe is one ability that an agent looked for on its host.
type Probe struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}
