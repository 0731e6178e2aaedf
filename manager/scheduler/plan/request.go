package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// held returns a sentence about the time or the sessions that a request waits for, or
// "" if it can be placed now.
func (r *Request) held(now time.Time) string {
	switch {
	case r.Replaces != "":
		return fmt.Sprintf("It starts when session %s, which it replaces, has ended.", r.Replaces)
	case len(r.After) == 1:
		return fmt.Sprintf("It starts after session %s has succeeded.", r.After[0])
	case len(r.After) > 1:
		return fmt.Sprintf("It starts after %d sessions have succeeded: %s.", len(r.After), strings.Join(r.After, ", "))
	case r.StartsAt.After(now):
		return fmt.Sprintf("It starts at %s.", r.StartsAt.UTC().Format(time.RFC3339))
	case r.RetryAt.After(now):
		return fmt.Sprintf("The last attempt failed; the next one is due at %s.", r.RetryAt.UTC().Format(time.RFC3339))
	}
	return ""
}

// excluded reports whether a request must not run on an agent.
func (r *Request) excluded(agent uuid.UUID) bool {
	return r.Strict && !slices.Contains(r.Agents, agent)
}

// rank is the preference of a request for an agent: requested agents first, agents on which it
// failed last.
type rank int

const (
	asked rank = iota
	plain
	avoided
)

func (r *Request) rank(agent uuid.UUID) rank {
	switch {
	case slices.Contains(r.AvoidAgents, agent):
		return avoided
	case slices.Contains(r.Agents, agent):
		return asked
	}
	return plain
}

// ranks returns the ranks that agents can have.
func (r *Request) ranks() []rank {
	switch {
	case len(r.Agents) > 0:
		return []rank{asked, plain, avoided}
	case len(r.AvoidAgents) > 0:
		return []rank{plain, avoided}
	}
	return []rank{plain}
}
