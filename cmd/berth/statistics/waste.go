package statistics

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// reports are the reports of waste with what they list.
var reports = []struct{ name, about string }{
	{"unused-accelerators", "running sessions whose accelerators compute nothing"},
	{"low-use", "users by accelerator hours whose utilization is low"},
	{"memory-above-need", "running sessions with far more memory than they reached"},
	{"smaller-device", "running sessions that would fit half of their accelerators"},
	{"unused-machines", "machines without a session"},
	{"long-limits", "users whose sessions end long before their lifetime"},
	{"fragmentation", "sessions spread over more machines than needed"},
	{"most-slots", "users by the cores and devices that they have now"},
	{"longest-waits", "sessions that wait, the longest first"},
	{"unused-memory", "users by the memory that was allocated and never used"},
}

// WasteCommand returns the command "berth admin waste".
func WasteCommand(a *cli.App) *cobra.Command {
	var since string
	var first int
	var names []string
	about := ""
	for _, r := range reports {
		names = append(names, r.name)
		about += "\n  " + r.name + strings.Repeat(" ", 21-len(r.name)) + r.about
	}
	cmd := a.Verb("waste [REPORT]", "List sessions, users and machines that use less than they have", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 0 {
				return a.Table(names, func() *output.Table {
					t := output.NewTable("REPORT", "LISTS")
					for _, r := range reports {
						t.Row(r.name, r.about)
					}
					return t
				})
			}
			if !slices.Contains(names, args[0]) {
				return cli.Usagef("%q is not one of %s", args[0], strings.Join(names, ", "))
			}
			in := client.WasteInput{Report: client.Enum(strings.ToUpper(strings.ReplaceAll(args[0], "-", "_"))), First: &first}
			from, err := a.ParseTime("--since", since)
			if err != nil {
				return err
			}
			if !from.IsZero() {
				in.From = &from
			}
			rows, err := c.Waste(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(rows, func() *output.Table { return wasteTable(rows) })
		})
	cmd.Long = "List sessions, users and machines that use less than they have, as far as you\ncan see them. Without REPORT, the reports are listed:\n" + about +
		"\n\nA value that was not measured is shown as -, not as 0."
	cmd.Example = "  berth admin waste unused-accelerators\n  berth admin waste low-use --since 30d"
	cmd.ValidArgs = names
	cmd.Flags().StringVar(&since, "since", "", "of reports about users: from when (default 30d)")
	cmd.Flags().IntVar(&first, "first", 50, "most rows, 1 to 500")
	return cmd
}

func wasteTable(rows []client.WasteRow) *output.Table {
	head := []string{"SESSION", "USER", "MACHINE", "SLOT"}
	if len(rows) > 0 {
		for _, n := range rows[0].Numbers {
			head = append(head, strings.ToUpper(n.Name))
		}
	}
	t := output.NewTable(append(head, "QUALITY")...)
	for _, r := range rows {
		line := []any{text(r.SessionName, r.Session), text(r.UserEmail, r.User), text(r.AgentName, r.Agent), text(r.Slot, "")}
		for _, n := range r.Numbers {
			line = append(line, number(r.Slot, n))
		}
		t.Row(append(line, strings.ToLower(r.Quality.String()))...)
	}
	return t
}

func number(slot string, n client.WasteNumber) string {
	if n.Value == nil {
		return "-"
	}
	v := *n.Value
	switch n.Unit {
	case "bytes":
		return output.Bytes(int64(v))
	case "byte-seconds", "slot-seconds":
		hours, unit := output.SlotHours(slot, strconv.FormatFloat(v, 'f', 0, 64))
		return hours + " " + unit
	case "seconds":
		return output.Duration(time.Duration(v) * time.Second)
	case "percent":
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}
