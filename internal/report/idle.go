package report

import "time"

// Idle is the idle check that would end a session next, with the time and the reason.
type Idle struct {
	Checker  string    `json:"checker"` // its name
	Kind     string    `json:"kind"`    // lifetime, network, utilization or memory
	EndsAt   time.Time `json:"ends_at"`
	Reason   string    `json:"reason"`    // one sentence for people
	WarnedAt time.Time `json:"warned_at"` // when the owner was notified; zero: not yet
}
