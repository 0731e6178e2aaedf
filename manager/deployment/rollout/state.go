package rollout

import (
	"fmt"
	"time"

	"github.com/containerd/errdefs"
)

// Kind is a way to change to another revision.
type Kind string

// The ways.
const (
	// Rolling replaces replicas one after another.
	Rolling Kind = "rolling"
	// BlueGreen starts all replicas of the new revision, and then moves all requests at once.
	BlueGreen Kind = "blue_green"
	// Canary gives the new revision a growing share of the requests while it is judged to be good.
	Canary Kind = "canary"
)

// Strategy is how a deployment changes to another revision.
type Strategy struct {
	Kind Kind
	// MaxSurge is the number of replicas beyond the wanted ones while replicas are replaced.
	MaxSurge int
	// MaxUnavailable is the number of wanted replicas that may be missing while replicas are replaced.
	MaxUnavailable int
	// AutoPromote moves the requests of BlueGreen as soon as all replicas have been ready for
	// PromoteAfter; otherwise a person does.
	AutoPromote  bool
	PromoteAfter time.Duration
	// Steps are the percentages of requests of Canary, growing, each below 100; a step lasts for at
	// least StepTime.
	Steps    []int
	StepTime time.Duration
	// Deadline limits the time of a change. A change that has not ended is rolled back.
	Deadline time.Duration
}

// Check returns an error that names the field and the limit.
func (s Strategy) Check() error {
	switch {
	case s.Kind != Rolling && s.Kind != BlueGreen && s.Kind != Canary:
		return invalid("kind %q is not one of %s, %s and %s", s.Kind, Rolling, BlueGreen, Canary)
	case s.MaxSurge < 0 || s.MaxUnavailable < 0:
		return invalid("maxSurge and maxUnavailable are at least 0")
	case s.Kind != BlueGreen && s.MaxSurge+s.MaxUnavailable == 0:
		return invalid("maxSurge and maxUnavailable are both 0, so no replica can be replaced")
	case s.Deadline <= 0:
		return invalid("deadline is above 0")
	case s.Kind == Canary && len(s.Steps) == 0:
		return invalid("a canary has at least one step")
	}
	last := 0
	for _, step := range s.Steps {
		if step <= last || step >= 100 {
			return invalid("steps are percentages that grow, above 0 and below 100: %d after %d", step, last)
		}
		last = step
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("strategy: "+format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

// Phase is a phase of a replica's life.
type Phase int

// The phases. An ended replica is not listed.
const (
	Starting Phase = iota // its session is created, or its engine is not ready
	Ready                 // it can get requests
	Draining              // it gets no new requests
	Failed                // it could not start, or is no longer healthy
)

// Replica is a replica as it is observed.
type Replica struct {
	ID       string
	Revision int
	Phase    Phase
	Since    time.Time // of the phase
}

// Verdict is what is known of a new revision beside the old one.
type Verdict int

// The verdicts.
const (
	Unknown Verdict = iota // too few requests
	Good
	Bad
)

// Failures are those of a revision since a replica of it was last ready.
type Failures struct {
	Count int
	Last  time.Time
	Why   string
}

// State is what is stored of a deployment.
type State struct {
	Wanted   int // replicas
	Strategy Strategy
	// Current is the revision that requests go to. Target is another one during a change, otherwise
	// the same.
	Current, Target int
	// Began is the start of the change, StepBegan that of the step of Canary with the index Step.
	Began, StepBegan time.Time
	Step             int
	Promoted         bool // a person has promoted the target
	Verdict          Verdict
	Erred            bool             // a request to the target has failed in this step
	Failures         map[int]Failures // by revision
}

// Decision is what happens next.
type Decision struct {
	Start map[int]int // number of replicas to start, by revision
	Drain []string    // replicas that get no more requests and end when they have none
	Stop  []string    // replicas that end at once: they have failed or are not ready
	// Weights are the shares of requests by revision, in percent.
	Weights map[int]int
	// Next is the state after the decision.
	Next State
	// Change says what became of the change to another revision.
	Change Change
	Why    string
}

// Change is the end of a change, or its next step.
type Change int

// The changes.
const (
	None       Change = iota
	Stepped           // Canary continues with its next step
	Completed         // the target is now current
	RolledBack        // the target was given up
)
