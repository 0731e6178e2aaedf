package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/kernel"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	form "github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/manager/series"
)

const (
	maxSubjects = 200
	maxPoints   = 2000
	maxRange    = 10 * 366 * 24 * time.Hour
	// maxLines limits the measures of an answer, because a machine can have many devices.
	maxLines = 5000
)

// TimeSeries returns the history of what the viewer can see.
func (r queryResolver) TimeSeries(ctx context.Context, subjects []uuid.UUID, metrics []string, from time.Time, to *time.Time, points *int) ([]*model.TimeSeries, error) {
	q := series.Query{Metrics: metrics, From: from.UTC(), To: clock.Now(), Points: 300}
	if to != nil {
		q.To = to.UTC()
	}
	if points != nil {
		q.Points = *points
	}
	switch {
	case len(subjects) == 0 || len(subjects) > maxSubjects:
		return nil, problem.Invalid("subjects", "must be 1 to %d ids", maxSubjects).WithLimit(fmt.Sprint(maxSubjects))
	case q.Points < 2 || q.Points > maxPoints:
		return nil, problem.Invalid("points", "must be from 2 to %d", maxPoints).WithLimit(fmt.Sprint(maxPoints))
	case !q.From.Before(q.To):
		return nil, problem.Invalid("from", "must be before to")
	case q.To.Sub(q.From) > maxRange:
		return nil, problem.Invalid("from", "must be at most 10 years before to")
	}
	var err error
	if q.Subjects, err = subjectsOf(ctx, r.Client, subjects); err != nil {
		return nil, err
	}
	lines, step, err := r.Resolver.Series.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	out := []*model.TimeSeries{}
	for subject, of := range lines {
		for _, l := range of {
			out = append(out, seriesOf(subject, l, step))
		}
	}
	if len(out) > maxLines {
		return nil, problem.Invalid("metrics", "select %d measures, more than %d: name some of them, or fewer subjects", len(out), maxLines).WithLimit(fmt.Sprint(maxLines))
	}
	slices.SortFunc(out, func(a, b *model.TimeSeries) int {
		return cmp.Or(cmp.Compare(a.Subject.String(), b.Subject.String()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.DeviceID, b.DeviceID))
	})
	return out, nil
}

// subjectsOf returns the subjects that the viewer can see, with the sources of their samples. An id that they cannot see is an error.
func subjectsOf(ctx context.Context, client *ent.Client, ids []uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	out, found := map[uuid.UUID]uuid.UUID{}, map[uuid.UUID]bool{}
	kernels, err := client.Kernel.Query().Where(kernel.Or(kernel.IDIn(ids...), kernel.SessionIDIn(ids...))).
		Select(kernel.FieldID, kernel.FieldSessionID, kernel.FieldAgentID).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range kernels {
		found[k.ID], found[k.SessionID] = true, true
		if k.AgentID != nil {
			out[k.ID] = *k.AgentID
		}
	}
	agents, err := client.Agent.Query().Where(agent.IDIn(ids...)).IDs(ctx)
	if err != nil {
		return nil, err
	}
	deployments, err := client.Deployment.Query().Where(deployment.IDIn(ids...)).IDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range append(agents, deployments...) {
		out[id], found[id] = id, true
	}
	for _, id := range ids {
		if !found[id] {
			return nil, problem.NotFound("container, session, machine or deployment " + id.String()).WithField("subjects")
		}
	}
	return out, nil
}

func seriesOf(subject uuid.UUID, l *form.Line, step time.Duration) *model.TimeSeries {
	out := &model.TimeSeries{
		Subject: subject, Name: l.Name, DeviceID: l.Device, Unit: l.Unit, Capacity: l.Capacity, Quality: l.Quality, Step: int(step / time.Second),
		At: make([]*time.Time, 0, len(l.Points)), Mean: make([]float64, 0, len(l.Points)),
		Minimum: make([]float64, 0, len(l.Points)), Maximum: make([]float64, 0, len(l.Points)),
	}
	for _, p := range l.Points {
		out.At = append(out.At, &p.At)
		out.Mean, out.Minimum, out.Maximum = append(out.Mean, p.Mean()), append(out.Minimum, p.Min), append(out.Maximum, p.Max)
	}
	return out
}
