package audit

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// RetentionCommand returns the command "berth admin retention".
func RetentionCommand(a *cli.App) *cobra.Command {
	return cli.Group("retention", "Show and set how long the audit log and other records are kept", retentionShow(a), retentionSet(a))
}

func retentionShow(a *cli.App) *cobra.Command {
	return cli.Alias(a.Verb("show", "Show how long each kind of record is kept", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Retention(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return retentionTable(a, list...) })
	}), "ls", "list")
}

func retentionTable(a *cli.App, list ...client.Retention) *output.Table {
	t := output.NewTable("CATEGORY", "KEPT", "REMOVED SO FAR", "LAST LOOKED")
	for _, r := range list {
		kept := "forever"
		if r.Days > 0 {
			kept = strconv.Itoa(r.Days) + " days"
		}
		t.Row(r.Category, kept, strconv.FormatInt(r.Removed, 10), a.Ago(r.SweptAt))
	}
	return t
}

func retentionSet(a *cli.App) *cobra.Command {
	cmd := a.Verb("set CATEGORY DAYS", "Set for how many days a kind of record is kept, or forever", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			days, err := retentionDays(args[1])
			if err != nil {
				return err
			}
			r, err := c.SetRetention(ctx, client.Enum(strings.ReplaceAll(args[0], "-", "_")), days)
			if err != nil {
				return err
			}
			return a.Table(r, func() *output.Table { return retentionTable(a, *r) })
		})
	cmd.Example = "  berth admin retention set audit 730\n  berth admin retention set tasks forever"
	return cmd
}

// retentionDays reads days such as 30 or 30d; "forever" is 0. A plain 0 is refused, because it
// could be misread as "no days".
func retentionDays(text string) (int, error) {
	if text == "forever" {
		return 0, nil
	}
	n, err := cli.ParseCount(strings.TrimSuffix(text, "d"))
	if err != nil || n == 0 {
		return 0, cli.Usagef("DAYS %s: write a whole number of days, or forever", text)
	}
	return n, nil
}
