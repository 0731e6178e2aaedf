package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) retentionCommand() *cobra.Command {
	return group("retention", "Show and set how long the audit log and other records are kept", a.retentionShow(), a.retentionSet())
}

func (a *app) retentionShow() *cobra.Command {
	return alias(a.verb("show", "Show how long each kind of record is kept", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Retention(ctx)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return a.retentionTable(list...) })
	}), "ls", "list")
}

func (a *app) retentionTable(list ...client.Retention) *output.Table {
	t := output.NewTable("CATEGORY", "KEPT", "REMOVED SO FAR", "LAST LOOKED")
	for _, r := range list {
		kept := "for ever"
		if r.Days > 0 {
			kept = strconv.Itoa(r.Days) + " days"
		}
		t.Row(r.Category, kept, strconv.FormatInt(r.Removed, 10), a.ago(r.SweptAt))
	}
	return t
}

func (a *app) retentionSet() *cobra.Command {
	cmd := a.verb("set CATEGORY DAYS", "Set for how many days a kind of record is kept, or forever", count(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			days, err := retentionDays(args[1])
			if err != nil {
				return err
			}
			r, err := c.SetRetention(ctx, strings.ReplaceAll(args[0], "-", "_"), days)
			if err != nil {
				return err
			}
			return a.table(r, func() *output.Table { return a.retentionTable(*r) })
		})
	cmd.Example = "  berth admin retention set audit 730\n  berth admin retention set tasks forever"
	return cmd
}

// retentionDays reads days such as 30 or 30d; forever is 0. A plain 0 is not
// taken, as some would mean "none" by it.
func retentionDays(text string) (int, error) {
	if text == "forever" {
		return 0, nil
	}
	n, err := parseCount(strings.TrimSuffix(text, "d"))
	if err != nil || n == 0 {
		return 0, usagef("DAYS %s: write a whole number of days, or forever", text)
	}
	return n, nil
}
