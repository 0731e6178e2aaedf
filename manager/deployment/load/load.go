// Package load is what gateways measure of the requests to deployments. Each gateway stores a Report about each deployment that it
// serves, every second and when a request begins to wait; managers read those of all gateways.
package load

import (
	"time"

	"github.com/google/uuid"
)

// Report is what one gateway says about one deployment.
type Report struct {
	// Version is that of the deployment's row that the gateway last read: with it, the gateway sends no request to replicas
	// that were drained in that version or before.
	Version     int
	Waiting     int // requests that wait for a replica
	LastRequest time.Time
	Replicas    map[uuid.UUID]Replica
}

// Replica is what one gateway says about one replica, also about one that is drained.
type Replica struct {
	Revision int
	InFlight int
	Ejected  bool // it gets no requests, because several failed in a row
	Window   Window
}

// Window is the sum over the last minute, or since the first request if that is less.
type Window struct {
	Seconds    float64
	Requests   int
	Errors     int // answers with 5xx, and those that ended early
	Prompt     int // tokens
	Completion int // tokens
	Cached     int // tokens of prompts that the engine had in its cache
	FirstByte  Histogram
	PerToken   Histogram
}
