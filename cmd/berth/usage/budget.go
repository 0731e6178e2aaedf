package usage

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// BudgetCommand returns the command "berth budget".
func BudgetCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("budget", "Show your budgets and those of your projects: what is spent, and when a limit will be reached", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			list, currency, err := c.Budgets(ctx, client.BudgetFilter{Mine: true})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Note("No budget limits your sessions.")
			}
			return a.Table(list, func() *output.Table { return BudgetTable(list, currency) })
		})
	cmd.Long = `Show the budgets that apply to your sessions. PROMISED is what pending and running
sessions with a lifetime will still cost. A session that would exceed the hard
limit is refused. REACHED is when a limit is reached if costs go on as in the
last 7 days.`
	return cmd
}

// BudgetTable shows budgets.
func BudgetTable(list []client.Budget, currency string) *output.Table {
	t := output.NewTable("ID", "OF", "PERIOD", "SPENT", "PROMISED", "SOFT", "HARD", "REACHED", "AT HARD", "CURRENCY").Spare("ID")
	for _, b := range list {
		reached := output.Cell{Text: "-"}
		if at := b.Status.HardReachedAt; at != nil {
			reached = output.Cell{Text: "hard " + day(*at), Color: output.Red}
		} else if at := b.Status.SoftReachedAt; at != nil {
			reached = output.Cell{Text: "soft " + day(*at), Color: output.Yellow}
		}
		t.Row(b.ID, cli.HolderText(b.Domain, b.Project, b.User, "-"), periodText(b), Money(b.Status.Spent), Money(b.Status.Promised),
			limit(b.Soft), limit(b.Hard), reached, strings.ToLower(b.AtHard.String()), currency)
	}
	return t
}

func day(at time.Time) string { return at.Local().Format("2006-01-02") }

func periodText(b client.Budget) string {
	switch {
	case b.Period == "MONTH":
		return "this month"
	case b.EndsAt == nil:
		return "from " + day(b.StartsAt)
	}
	return day(b.StartsAt) + " to " + day(*b.EndsAt)
}

func limit(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// Money shortens an amount to two decimals, as people read it; smaller amounts stay exact.
func Money(text string) string {
	whole, part, _ := strings.Cut(text, ".")
	if len(part) <= 2 || whole == "0" && strings.HasPrefix(part, "00") {
		return text
	}
	return whole + "." + part[:2]
}
