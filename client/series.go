package client

import (
	"context"
	"time"
)

// SeriesFilter selects the history of containers, machines and deployments.
type SeriesFilter struct {
	Subjects []string // ids; a session stands for its containers
	Metrics  []string // names; none selects all
	From, To time.Time
	Points   int // most points of one measure; 0 is the default of the manager
}

// TimeSeries reads measurements over time.
func (c *Client) TimeSeries(ctx context.Context, f SeriesFilter) ([]TimeSeries, error) {
	var to *time.Time
	if !f.To.IsZero() {
		to = &f.To
	}
	var points *int
	if f.Points > 0 {
		points = &f.Points
	}
	out, err := queryTimeSeries(ctx, c, f.Subjects, f.Metrics, f.From, to, points)
	return out.TimeSeries, err
}
