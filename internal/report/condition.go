package report

import (
	"strings"
	"time"
)

// Types of conditions that an agent can be in.
const (
	DiskPressure       = "disk_pressure"
	InodePressure      = "inode_pressure"
	MemoryPressure     = "memory_pressure"
	RuntimeUnavailable = "runtime_unavailable"
	ClockSkew          = "clock_skew"
)

// Condition is one check of an agent's machine and its latest result. While the status of any
// condition is true, no new session is placed on the agent.
type Condition struct {
	Type   string    `json:"type"`
	Status bool      `json:"status"`
	Reason string    `json:"reason"` // one clause for people
	Since  time.Time `json:"since"`  // time of the last change of the status
}

// String names a condition with its reason: disk pressure, 1 GiB of 20 GiB free.
func (c Condition) String() string {
	text := strings.ReplaceAll(c.Type, "_", " ")
	if c.Reason != "" {
		text += ", " + c.Reason
	}
	return text
}

// Holding returns the conditions whose status is true as one clause, or "".
func Holding(list []Condition) string {
	var parts []string
	for _, c := range list {
		if c.Status {
			parts = append(parts, c.String())
		}
	}
	return strings.Join(parts, "; ")
}
