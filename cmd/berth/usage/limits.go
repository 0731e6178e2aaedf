package usage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// LimitsCommand shows the limits of a user, project or domain. It is part of the user's own
// commands and of those about policies.
func LimitsCommand(a *cli.App) *cobra.Command {
	var user, project, domain, on string
	cmd := a.Verb("limits", "Show your limits or another user's: what is used, what is left, and which policy sets it", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) (err error) {
			var at client.Place
			if at.User, err = cli.FindUserID(ctx, c, user); err != nil {
				return err
			}
			if at.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
				return err
			}
			if at.Domain, err = cli.FindDomainID(ctx, c, domain); err != nil {
				return err
			}
			if at.ResourceGroup, err = cli.FindGroupID(ctx, c, on); err != nil {
				return err
			}
			list, err := c.EffectiveLimits(ctx, at)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Note("Nothing is limited by a policy.")
			}
			return a.Table(list, func() *output.Table { return limitsTable(list) })
		})
	cmd.Long = `Show the limits of yourself in your project, of a user, a project or a domain: for
each amount the strictest limit, how much is used and left, and the policy that
sets it. Limits in one resource group are shown only with --group.`
	cmd.Example = `  berth limits --group gpu
  berth admin policy limits --user kim@example.org --project thesis`
	flags := cmd.Flags()
	flags.StringVar(&user, "user", "", "whose (default, without --project and --domain: yours)")
	flags.StringVar(&project, "project", "", "in which project (default: your only one)")
	flags.StringVar(&domain, "domain", "", "of which domain")
	flags.StringVar(&on, "group", "", "on which resource group")
	return cmd
}

func limitsTable(list []client.EffectiveLimit) *output.Table {
	t := output.NewTable("WHAT", "LIMIT", "USED", "LEFT", "POLICY", "OF")
	for _, l := range list {
		left := output.Cell{Text: cli.LimitAmount(l.What, l.Assignable)}
		if l.Assignable == "0" {
			left.Color = output.Red
		}
		t.Row(l.What, cli.LimitAmount(l.What, l.Limit), cli.LimitAmount(l.What, l.Used), left, l.Policy,
			cli.LimitOf(l.Scope.String(), l.Holder, cli.OrNone(l.WithinProject), cli.OrNone(l.ResourceGroup)))
	}
	return t
}
