package policy

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/cmd/berth/usage"
)

// BudgetCommand returns the command "berth admin budget".
func BudgetCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("budget", "Manage what the sessions of users, projects and domains can cost", budgetList(a), budgetSet(a), budgetRemove(a)), "budgets")
}

func budgetList(a *cli.App) *cobra.Command {
	var of cli.HolderFlags
	cmd := cli.Alias(a.Verb("ls", "List budgets with what is spent", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) (err error) {
			var f client.BudgetFilter
			if of.Given() > 0 {
				h, err := of.Holder(ctx, c)
				if err != nil {
					return err
				}
				f.Domain, f.Project, f.User = h.Domain, h.Project, h.User
			}
			list, currency, err := c.Budgets(ctx, f)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return usage.BudgetTable(list, currency) })
		}), "list")
	of.Add(cmd, false)
	return cmd
}

func budgetSet(a *cli.App) *cobra.Command {
	var of cli.HolderFlags
	var in client.SetBudgetInput
	var period, from, to, action string
	cmd := a.Verb("set [ID]", "Create a budget, or change the limits of one", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			if (len(args) == 1) == (of.Given() > 0) {
				return cli.Usagef("give the id of a budget to change it, or one of --domain, --project and --user for a new one")
			}
			if len(args) == 1 {
				in.ID = args[0]
			} else {
				h, err := of.Holder(ctx, c)
				if err != nil {
					return err
				}
				in.Domain, in.Project, in.User = h.Domain, h.Project, h.User
			}
			in.Period, in.AtHard = client.Enum(strings.ToUpper(period)), client.Enum(strings.ToUpper(action))
			if from != "" {
				if in.StartsAt, err = a.ParseEnd("--from", from); err != nil {
					return err
				}
			}
			if to != "" {
				if in.EndsAt, err = a.ParseEnd("--to", to); err != nil {
					return err
				}
			}
			b, err := c.SetBudget(ctx, in)
			if err != nil {
				return err
			}
			currency, err := c.Currency(ctx)
			if err != nil {
				return err
			}
			return a.Table(b, func() *output.Table { return usage.BudgetTable([]client.Budget{*b}, currency) })
		})
	cmd.Long = `Create a budget for a user, a project or a domain, or change the limits of one.
Reaching the soft limit is reported. At the hard limit, sessions that cost
something are refused; with --at-hard terminate, running ones are ended too.`
	cmd.Example = `  berth admin budget set --project vision --hard 500 --soft 400
  berth admin budget set --user kim@example.org --period total --to 2027-07-01 --hard 100 --at-hard terminate
  berth admin budget set 01999d2e-7f5b-7c8e-8e41-5a3c1d2f4b6a --hard 800`
	of.Add(cmd, false)
	flags := cmd.Flags()
	flags.StringVar(&in.Soft, "soft", "", "amount whose reaching is reported, or none")
	flags.StringVar(&in.Hard, "hard", "", "amount above which sessions are refused, or none")
	flags.StringVar(&action, "at-hard", "", "what happens to running sessions at the hard limit: keep or terminate (default keep)")
	flags.StringVar(&period, "period", "", "month, or total: once (default month)")
	flags.StringVar(&from, "from", "", "when it begins: a date or a time (default now)")
	flags.StringVar(&to, "to", "", "with --period total: when it ends")
	flags.StringVar(&in.TimeZone, "time-zone", "", "in which months begin, such as Europe/Berlin (default UTC)")
	return cmd
}

func budgetRemove(a *cli.App) *cobra.Command {
	return cli.Alias(a.Verb("rm ID", "Delete a budget", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			return a.Removed(args[0], c.DeleteBudget(ctx, args[0]))
		}), "remove")
}
