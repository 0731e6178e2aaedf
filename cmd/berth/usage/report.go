package usage

import (
	"context"
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/csvtext"
)

// usual is the period of a report without --from.
const usual = 30 * 24 * time.Hour

// dimensions are the values of --by.
var dimensions = []string{
	"slot", "user", "project", "domain", "group", "agent", "device", "image", "type", "session", "deployment", "hour", "day", "week", "month",
}

// grouped are the flags of a report.
type grouped struct {
	by                                []string
	zone, domain, group, agent, image string
	deployment, slot                  string
	csv                               bool
	parquet                           string // a file
}

func (g *grouped) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&g.by, "by", nil, "group by these, in this order: "+strings.Join(dimensions, ", "))
	flags.StringVar(&g.zone, "time-zone", "", "in which days, weeks and months begin, such as Europe/Berlin (default UTC)")
	flags.StringVar(&g.domain, "domain", "", "only this domain's, by name or id")
	flags.StringVar(&g.group, "group", "", "only on this resource group, by name or id")
	flags.StringVar(&g.agent, "agent", "", "only on this agent, by name or id")
	flags.StringVar(&g.image, "image", "", "only of this image, by name or id")
	flags.StringVar(&g.deployment, "deployment", "", "only of this deployment, by name or id")
	flags.StringVar(&g.slot, "slot", "", "only this slot")
	flags.BoolVar(&g.csv, "csv", false, "print CSV with exact sums")
	flags.StringVar(&g.parquet, "parquet", "", "write a Parquet file with exact sums")
}

// wanted reports whether one of the flags is set.
func (g *grouped) wanted() bool {
	return len(g.by) > 0 || g.csv || g.parquet+g.zone+g.domain+g.group+g.agent+g.image+g.deployment+g.slot != ""
}

// enum returns the dimension of a value of --by.
func enum(by string) (client.Enum, error) {
	for _, d := range dimensions {
		if d == by {
			return client.Enum(strings.NewReplacer("GROUP", "RESOURCE_GROUP", "TYPE", "SESSION_TYPE").Replace(strings.ToUpper(by))), nil
		}
	}
	return "", cli.Usagef("--by: %q is not one of %s", by, strings.Join(dimensions, ", "))
}

// input resolves the flags.
func (g *grouped) input(ctx context.Context, a *cli.App, c *client.Client, f client.UsageFilter) (in client.UsageReportInput, err error) {
	in = client.UsageReportInput{From: f.From, TimeZone: g.zone, User: f.User, Project: f.Project, Slot: g.slot}
	if in.From.IsZero() {
		in.From = a.Now().Add(-usual)
	}
	if !f.To.IsZero() {
		in.To = &f.To
	}
	for _, by := range g.by {
		d, err := enum(by)
		if err != nil {
			return in, err
		}
		in.By = append(in.By, d)
	}
	if in.Domain, err = cli.FindDomainID(ctx, c, g.domain); err != nil {
		return in, err
	}
	if in.ResourceGroup, err = cli.FindGroupID(ctx, c, g.group); err != nil {
		return in, err
	}
	for _, one := range []struct {
		name string
		into *string
		find func(name string) (string, error)
	}{
		{g.agent, &in.Agent, func(name string) (string, error) {
			x, err := cli.FindAgent(ctx, c, name)
			if err != nil {
				return "", err
			}
			return x.ID, nil
		}},
		{g.image, &in.Image, func(name string) (string, error) {
			x, err := cli.FindImage(ctx, c, name)
			if err != nil {
				return "", err
			}
			return x.ID, nil
		}},
		{g.deployment, &in.Deployment, func(name string) (string, error) {
			x, err := cli.FindDeployment(ctx, c, name)
			if err != nil {
				return "", err
			}
			return x.ID, nil
		}},
	} {
		if one.name == "" {
			continue
		}
		if *one.into, err = one.find(one.name); err != nil {
			return in, err
		}
	}
	return in, nil
}

// print prints a report.
func (g *grouped) print(a *cli.App, rows []client.UsageRow) error {
	if g.csv {
		return g.write(a.Out, rows)
	}
	if g.parquet != "" {
		return g.save(rows)
	}
	return a.Table(rows, func() *output.Table {
		var head []string
		for _, by := range g.by {
			if by != "slot" {
				head = append(head, strings.ToUpper(by))
			}
		}
		head = append(head, "SLOT", "CHARGED", "UNIT")
		priced := slices.ContainsFunc(rows, func(r client.UsageRow) bool { return r.Cost != nil })
		if priced {
			head = append(head, "COST")
		}
		t := output.NewTable(head...)
		for _, r := range rows {
			var cells []any
			for _, k := range r.Keys {
				if k.Dimension != "SLOT" {
					cells = append(cells, text(k))
				}
			}
			hours, unit := output.SlotHours(r.Slot, r.SlotSeconds)
			cells = append(cells, r.Slot, hours, unit)
			if priced {
				cells = append(cells, costText(r))
			}
			t.Row(cells...)
		}
		return t
	})
}

// costText shows the cost of a row; a plus says that no price applied to a part of it.
func costText(r client.UsageRow) string {
	switch {
	case r.Cost == nil:
		return "no price"
	case r.UnpricedSlotSeconds != "0":
		return Money(*r.Cost) + " +"
	}
	return Money(*r.Cost)
}

// text shows the name of what a row is about, or its id.
func text(k client.UsageKey) string {
	switch {
	case k.Label != "":
		return k.Label
	case k.Value != "":
		return k.Value
	default:
		return "-"
	}
}

// write writes CSV: for each dimension the value and its name, and the exact sum.
func (g *grouped) write(out io.Writer, rows []client.UsageRow) error {
	w := csv.NewWriter(out)
	var head []string
	for _, by := range g.by {
		head = append(head, by, by+"_name")
	}
	_ = w.Write(append(head, "slot", "slot_seconds", "cost", "unpriced_slot_seconds")) // Error returns the error
	for _, r := range rows {
		var cells []string
		for _, k := range r.Keys {
			cells = append(cells, csvtext.Cell(k.Value), csvtext.Cell(k.Label))
		}
		cost := ""
		if r.Cost != nil {
			cost = *r.Cost
		}
		_ = w.Write(append(cells, r.Slot, r.SlotSeconds, cost, r.UnpricedSlotSeconds))
	}
	w.Flush()
	return w.Error()
}
