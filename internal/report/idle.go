package report

import "time"

// Idle says which idle check would end a session next, when, and why.
type Idle struct {
	Checker  string    `json:"checker"` // its name
	Kind     string    `json:"kind"`    // lifetime, network, utilization or memory
	EndsAt   time.Time `json:"ends_at"`
	Reason   string    `json:"reason"`    // one sentence for people
	WarnedAt time.Time `json:"warned_at"` // when the owner was told; zero: not yet
}
