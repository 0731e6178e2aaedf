package statistics

import (
	"context"
	"math/big"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// places are the values of --by of reports about capacity.
var places = []string{"group", "agent", "hour", "day", "week", "month"}

func capacityCommand(a *cli.App) *cobra.Command {
	var period cli.PeriodFlags
	var by []string
	var zone, group, slot string
	cmd := a.Verb("capacity", "Show which part of the capacity was used, allocated, free and out of service", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			in := client.CapacityReportInput{TimeZone: zone, Slot: slot}
			from, to, err := period.Read(a)
			if err != nil {
				return err
			}
			in.From = from
			if from.IsZero() {
				in.From = a.Now().Add(-usual)
			}
			if !to.IsZero() {
				in.To = &to
			}
			if in.By, err = enums(by, places); err != nil {
				return err
			}
			if in.ResourceGroup, err = cli.FindGroupID(ctx, c, group); err != nil {
				return err
			}
			out, err := c.CapacityReport(ctx, in)
			if err != nil {
				return err
			}
			if out.Since == nil {
				a.Note("The capacity was not recorded in this period.")
			} else if out.Since.After(in.From.Add(time.Minute)) {
				a.Note("The record of capacity begins at %s.", out.Since.Local().Format("2006-01-02 15:04"))
			}
			return a.Table(out, func() *output.Table { return capacityTable(by, out.Rows) })
		})
	cmd.Long = `Show, for each slot, the capacity in slot-hours and its parts in percent: used and
idle are allocated to sessions that ran, promised to sessions that were starting.
Only users who see the whole cluster can do this.`
	cmd.Example = "  berth stats capacity --since 30d --by group\n  berth stats capacity --slot cuda.device --by day -o json"
	period.Register(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&by, "by", nil, "group by these: group, agent, and one of hour, day, week, month")
	flags.StringVar(&zone, "time-zone", "", "in which days, weeks and months begin, such as Europe/Berlin (default UTC)")
	flags.StringVar(&group, "group", "", "only this resource group, by name or id")
	flags.StringVar(&slot, "slot", "", "only this slot")
	return cmd
}

func capacityTable(by []string, rows []client.CapacityRow) *output.Table {
	head := heads(by)
	t := output.NewTable(append(head[:len(by)], "SLOT", "CAPACITY", "UNIT", "USED", "IDLE", "UNMEASURED", "PROMISED", "FREE", "OUT")...)
	for _, r := range rows {
		var line []any
		for _, k := range r.Keys {
			line = append(line, text(k.Label, k.Value))
		}
		hours, unit := output.SlotHours(r.Slot, r.Capacity)
		line = append(line, r.Slot, hours, unit)
		for _, part := range []string{r.Used, r.Idle, r.Unmeasured, r.Promised, r.Unallocated, r.OutOfService} {
			line = append(line, percent(part, r.Capacity))
		}
		t.Row(line...)
	}
	return t
}

// percent returns a part of exact decimals in percent.
func percent(part, whole string) string {
	p, ok := new(big.Rat).SetString(part)
	w, fine := new(big.Rat).SetString(whole)
	if !ok || !fine || w.Sign() == 0 {
		return "-"
	}
	return p.Quo(p, w).Mul(p, big.NewRat(100, 1)).FloatString(1) + " %"
}
