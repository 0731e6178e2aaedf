package deployment

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/deployment/rollout"
	"github.com/berthhq/berth/manager/session"
)

// DeploymentRevisionInput describes how replicas are started.
type DeploymentRevisionInput struct {
	Request      session.CreateSessionInput
	Variant      *string
	Options      map[string]string
	Model        *string
	Subpath      *string
	Definition   *string
	Port         *int
	Health       *string
	HealthStatus *int
	Interval     *float64
	Timeout      *float64
	Retries      *int
	StartTimeout *float64
	Metrics      *string
	Comment      *string
}

// CreateDeploymentInput describes a deployment.
type CreateDeploymentInput struct {
	Name         string
	Description  *string
	Project      *uuid.UUID
	Shared       *bool
	Open         *bool
	Recorded     *bool
	Revision     DeploymentRevisionInput
	Replicas     *int
	Strategy     *DeploymentStrategyInput
	Scaling      *DeploymentScalingInput
	Concurrency  *int
	DrainSeconds *int
}

// UpdateDeploymentInput changes the fields that are not nil.
type UpdateDeploymentInput struct {
	ID           uuid.UUID
	Description  *string
	Shared       *bool
	Open         *bool
	Recorded     *bool
	Replicas     *int
	Strategy     *DeploymentStrategyInput
	Scaling      *DeploymentScalingInput
	Concurrency  *int
	DrainSeconds *int
}

// AddDeploymentRevisionInput adds a revision.
type AddDeploymentRevisionInput struct {
	Deployment uuid.UUID
	Revision   DeploymentRevisionInput
}

// RollBackDeploymentInput names the revision to return to; nil = the one before.
type RollBackDeploymentInput struct {
	ID       uuid.UUID
	Revision *int
}

// PromoteDeploymentInput names the deployment whose new revision gets all requests.
type PromoteDeploymentInput struct{ ID uuid.UUID }

// DeleteDeploymentInput names the deployment to end.
type DeleteDeploymentInput struct {
	ID    uuid.UUID
	Force *bool
}

// DeploymentPayload is a deployment after a change.
type DeploymentPayload struct{ Deployment *ent.Deployment }

// DeploymentStrategyInput changes the fields of a Strategy that are not nil.
type DeploymentStrategyInput struct {
	Kind           *rollout.Kind
	MaxSurge       *int
	MaxUnavailable *int
	AutoPromote    *bool
	PromoteAfter   *int
	Steps          []int
	StepTime       *int
	Deadline       *int
}

// DeploymentScalingInput changes the fields of a Scaling that are not nil.
type DeploymentScalingInput struct {
	Min       *int
	Max       *int
	ZeroAfter *int
	UpAfter   *int
	DownAfter *int
	Targets   []DeploymentTargetInput
	Schedules []DeploymentScheduleInput
}

// DeploymentTargetInput is a measure, and what one replica can take of it.
type DeploymentTargetInput struct {
	Metric     string
	PerReplica float64
	Sum        *bool
}

// DeploymentScheduleInput raises the minimum between two times of the day.
type DeploymentScheduleInput struct {
	From, To string
	Days     []int
	TimeZone *string
	Replicas int
}

// Traffic is the share of a revision.
type Traffic struct{ Revision, Percent int }

// Engine is how the engine of a revision is reached and checked. Times are in seconds.
type Engine struct {
	Port         int
	Health       string // path; "" = the engine is ready when its port is open
	HealthStatus int
	Interval     float64
	Timeout      float64
	Retries      int // failures in a row after which a ready replica has failed
	StartTimeout float64
	Metrics      string // path; "" = none
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
