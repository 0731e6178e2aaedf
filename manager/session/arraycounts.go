package session

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/viewer"
)

// ArrayCounts is the number of members of an array by state.
type ArrayCounts struct {
	Pending, Starting, Running, Ending int
	Succeeded, Failed, Cancelled       int
}

// live counts the members that have not ended.
func (c ArrayCounts) live() int { return c.Pending + c.Starting + c.Running + c.Ending }

// ArrayCounts counts the members of arrays; of each index, the latest session. The caller has
// checked that the viewer can see the arrays.
func (s *Service) ArrayCounts(ctx context.Context, arrays []uuid.UUID) (map[uuid.UUID]ArrayCounts, error) {
	var rows []struct {
		ArrayID uuid.UUID                  `json:"array_id"`
		Status  lifecycle.Status           `json:"status"`
		Result  session.Result             `json:"result"`
		Reason  *session.TerminationReason `json:"termination_reason"`
		Count   int                        `json:"count"`
	}
	err := s.Client.Session.Query().Where(session.ArrayIDIn(arrays...), session.Replaced(false)).
		GroupBy(session.FieldArrayID, session.FieldStatus, session.FieldResult, session.FieldTerminationReason).
		Aggregate(ent.Count()).Scan(viewer.SystemContext(ctx), &rows)
	if err != nil {
		return nil, fmt.Errorf("count members of arrays: %w", err)
	}
	out := make(map[uuid.UUID]ArrayCounts, len(arrays))
	for _, r := range rows {
		c := out[r.ArrayID]
		*c.of(r.Status, r.Result, r.Reason) += r.Count
		out[r.ArrayID] = c
	}
	return out, nil
}

// of returns the counter for members in a state.
func (c *ArrayCounts) of(status lifecycle.Status, result session.Result, reason *session.TerminationReason) *int {
	switch status {
	case lifecycle.Pending:
		return &c.Pending
	case lifecycle.Running:
		return &c.Running
	case lifecycle.Terminating:
		return &c.Ending
	case lifecycle.Scheduled, lifecycle.Preparing, lifecycle.Prepared, lifecycle.Creating:
		return &c.Starting
	}
	switch {
	case result == session.ResultSuccess:
		return &c.Succeeded
	case status == lifecycle.Cancelled, reason != nil && *reason == session.TerminationReasonUserRequested:
		return &c.Cancelled
	}
	return &c.Failed
}
