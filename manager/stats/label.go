package stats

import (
	"context"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/resourcegroup"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/user"
)

// rows adds labels. Objects that were deleted, or that the viewer cannot see, have none.
func (in UsageReportInput) rows(ctx context.Context, client *ent.Client, sums []*usageSum) ([]UsageRow, error) {
	loc := time.UTC
	if in.TimeZone != nil {
		loc, _ = time.LoadLocation(*in.TimeZone) // checked before
	}
	ids := make([]map[uuid.UUID]string, len(in.By))
	out := make([]UsageRow, 0, len(sums))
	costs := costsOf(sums)
	for n, sum := range sums {
		row := UsageRow{Slot: sum.slot, Keys: []UsageKey{}, SlotSeconds: exact(sum.slot, sum.used), Cost: costs[n], UnpricedSlotSeconds: exact(sum.slot, sum.unpriced)}
		for i, value := range strings.Split(sum.keys, "\t")[1:] {
			key := UsageKey{Dimension: in.By[i], Value: value, Label: value}
			if id, err := uuid.Parse(value); err == nil {
				if ids[i] == nil {
					ids[i] = map[uuid.UUID]string{}
				}
				ids[i][id] = ""
			} else if _, plain := dimensions[key.Dimension]; !plain {
				seconds, _ := strconv.ParseInt(value, 10, 64) // from our own statement
				at := time.Unix(seconds, 0).In(loc)
				key.Value, key.Label = at.UTC().Format(time.RFC3339), at.Format(layouts[key.Dimension])
			}
			row.Keys = append(row.Keys, key)
		}
		out = append(out, row)
	}
	for i, set := range ids {
		if err := label(ctx, client, in.By[i], set); err != nil {
			return nil, err
		}
	}
	for _, row := range out {
		for i := range row.Keys {
			if id, err := uuid.Parse(row.Keys[i].Value); err == nil {
				row.Keys[i].Label = ids[i][id]
			}
		}
	}
	return out, nil
}

// layouts are the labels of steps of time.
var layouts = map[UsageDimension]string{ByHour: "2006-01-02 15:04", ByDay: "2006-01-02", ByWeek: "2006-01-02", ByMonth: "2006-01"}

// label fills in the names of objects.
func label(ctx context.Context, client *ent.Client, d UsageDimension, set map[uuid.UUID]string) error {
	if len(set) == 0 {
		return nil
	}
	var list []uuid.UUID
	for id := range set {
		list = append(list, id)
	}
	var rows []struct {
		ID    uuid.UUID
		Label string
	}
	var err error
	switch d {
	case ByUser:
		err = client.User.Query().Where(user.IDIn(list...)).Modify(labelled("email")).Scan(ctx, &rows)
	case ByProject:
		err = client.Project.Query().Where(project.IDIn(list...)).Modify(labelled("name")).Scan(ctx, &rows)
	case ByDomain:
		err = client.Domain.Query().Where(domain.IDIn(list...)).Modify(labelled("name")).Scan(ctx, &rows)
	case ByResourceGroup:
		err = client.ResourceGroup.Query().Where(resourcegroup.IDIn(list...)).Modify(labelled("name")).Scan(ctx, &rows)
	case ByAgent:
		err = client.Agent.Query().Where(agent.IDIn(list...)).Modify(labelled("name")).Scan(ctx, &rows)
	case ByDevice:
		err = client.Device.Query().Where(device.IDIn(list...)).Modify(labelled("device_id")).Scan(ctx, &rows)
	case ByImage:
		err = client.Image.Query().Where(image.IDIn(list...)).Modify(labelled("reference")).Scan(ctx, &rows)
	case BySessionID:
		err = client.Session.Query().Where(session.IDIn(list...)).Modify(labelled("name")).Scan(ctx, &rows)
	case ByDeployment:
		err = client.Deployment.Query().Where(deployment.IDIn(list...)).Modify(labelled("name")).Scan(ctx, &rows)
	}
	for _, r := range rows {
		set[r.ID] = r.Label
	}
	return err
}

// labelled selects the id and one more column.
func labelled(column string) func(*sql.Selector) {
	return func(s *sql.Selector) { s.Select(s.C("id"), sql.As(s.C(column), "label")) }
}
