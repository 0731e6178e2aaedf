package deployment

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/promptrecord"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// DeletePromptRecordsInput names the deployment whose records are deleted.
type DeletePromptRecordsInput struct{ Deployment uuid.UUID }

// DeletePromptRecordsPayload has the number of records that were deleted.
type DeletePromptRecordsPayload struct{ Deleted int }

// DeletePromptRecords deletes all records of the requests to a deployment. Only its owner can do that.
func (s *Service) DeletePromptRecords(ctx context.Context, in DeletePromptRecordsInput) (*DeletePromptRecordsPayload, error) {
	d, err := s.find(ctx, in.Deployment, access.Update)
	if err != nil {
		return nil, problem.Within(err, "deployment")
	}
	if viewer.From(ctx).User != d.OwnerID {
		return nil, problem.Forbidden("only the owner of deployment %s can delete its records", d.Name)
	}
	n, err := s.Client.PromptRecord.Delete().Where(promptrecord.DeploymentID(d.ID)).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("delete the records of a deployment: %w", err)
	}
	return &DeletePromptRecordsPayload{Deleted: n}, nil
}
