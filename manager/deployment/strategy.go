package deployment

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/deployment/rollout"
)

// Strategy is how a deployment changes to another revision, as it is stored. Times are in seconds.
type Strategy struct {
	Kind                     rollout.Kind
	MaxSurge, MaxUnavailable int
	AutoPromote              bool
	PromoteAfter             int
	Steps                    []int
	StepTime                 int
	Deadline                 int
}

const (
	maxSteps = 20
	maxWait  = 24 * 3600
	maxWeek  = 7 * 24 * 3600
)

// usual is the strategy of a deployment that does not choose.
func usual() Strategy {
	return Strategy{Kind: rollout.Rolling, MaxSurge: 1, AutoPromote: true, Steps: []int{10, 50}, StepTime: 120, Deadline: 3600}
}

// with returns the strategy after a change.
func (s Strategy) with(in *DeploymentStrategyInput) (Strategy, error) {
	if in == nil {
		return s, nil
	}
	set(&s.Kind, in.Kind)
	set(&s.MaxSurge, in.MaxSurge)
	set(&s.MaxUnavailable, in.MaxUnavailable)
	set(&s.AutoPromote, in.AutoPromote)
	set(&s.PromoteAfter, in.PromoteAfter)
	set(&s.StepTime, in.StepTime)
	set(&s.Deadline, in.Deadline)
	if in.Steps != nil {
		s.Steps = in.Steps
	}
	for _, x := range []struct {
		field          string
		value, low, up int
	}{
		{"promoteAfter", s.PromoteAfter, 0, maxWait}, {"stepTime", s.StepTime, 1, maxWait}, {"deadline", s.Deadline, 60, maxWeek},
		{"steps", len(s.Steps), 0, maxSteps},
	} {
		if err := within("strategy."+x.field, x.value, x.low, x.up); err != nil {
			return s, err
		}
	}
	return s, named("strategy", s.rules().Check())
}

func (s Strategy) rules() rollout.Strategy {
	return rollout.Strategy{
		Kind: s.Kind, MaxSurge: s.MaxSurge, MaxUnavailable: s.MaxUnavailable, AutoPromote: s.AutoPromote,
		PromoteAfter: time.Duration(s.PromoteAfter) * time.Second, Steps: s.Steps,
		StepTime: time.Duration(s.StepTime) * time.Second, Deadline: time.Duration(s.Deadline) * time.Second,
	}
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// within returns an error that names the field and the limit if a value is not between two others.
func within(field string, value, low, up int) error {
	if value < low || value > up {
		return problem.Invalid(field, "%d is not between %d and %d", value, low, up).WithLimit(fmt.Sprintf("%d..%d", low, up))
	}
	return nil
}

// named gives an invalid argument of another package the name of the field in the API.
func named(field string, err error) error {
	if err == nil || !errdefs.IsInvalidArgument(err) {
		return err
	}
	text := strings.TrimSuffix(err.Error(), ": "+errdefs.ErrInvalidArgument.Error())
	return problem.Invalid(field, "%s", strings.TrimPrefix(strings.TrimPrefix(text, "strategy: "), "scaling: "))
}

// stored reads a column in JSON.
func stored[T any](text json.RawMessage) (out T, err error) {
	if len(text) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("read settings of the deployment: %w", err)
	}
	return out, nil
}

// text returns a value as a column in JSON. The values have no type that JSON cannot express.
func text(v any) json.RawMessage {
	out, _ := json.Marshal(v)
	return out
}
