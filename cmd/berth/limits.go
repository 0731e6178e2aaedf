package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/resource"
	"github.com/spf13/cobra"
)

// limitsCommand shows what binds someone somewhere; it stands among one's own
// commands and beside the policies.
func (a *app) limitsCommand() *cobra.Command {
	var user, project, domain, on string
	cmd := a.verb("limits", "Show your limits or another user's: what is used, what is left, and which policy sets it", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) (err error) {
			var at client.Place
			if at.User, err = findUserID(ctx, c, user); err != nil {
				return err
			}
			if at.Project, err = findProjectID(ctx, c, project); err != nil {
				return err
			}
			if at.Domain, err = findDomainID(ctx, c, domain); err != nil {
				return err
			}
			if at.ResourceGroup, err = findGroupID(ctx, c, on); err != nil {
				return err
			}
			list, err := c.EffectiveLimits(ctx, at)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.note("Nothing is limited by a policy.")
			}
			return a.table(list, func() *output.Table { return limitsTable(list) })
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
		left := output.Cell{Text: limitAmount(l.What, l.Assignable)}
		if l.Assignable == "0" {
			left.Color = output.Red
		}
		t.Row(l.What, limitAmount(l.What, l.Limit), limitAmount(l.What, l.Used), left, l.Policy,
			limitOf(l.Scope, l.Holder, orNone(l.WithinProject), orNone(l.ResourceGroup)))
	}
	return t
}

func orNone(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// limitOf is whom a limit binds, and where only.
func limitOf(scope, holder, within, on string) string {
	text := strings.TrimSpace(scope + " " + holder)
	if within != "" {
		text += " within " + within
	}
	if on != "" {
		text += " on " + on
	}
	return text
}

// overLimits lists all limits that a request was refused for.
func overLimits(list []client.LimitReached) *output.Table {
	t := output.NewTable("WHAT", "USED", "ASKED FOR", "LIMIT", "POLICY", "OF")
	for _, l := range list {
		t.Row(l.What, limitAmount(l.What, l.Used), limitAmount(l.What, l.Requested), limitAmount(l.What, l.Limit), l.Policy,
			limitOf(l.Scope, l.Holder, l.WithinProject, l.ResourceGroup))
	}
	return t
}

// limitAmount is an amount of a limit in people's units.
func limitAmount(what, amount string) string {
	n, err := strconv.ParseInt(amount, 10, 64)
	slot := strings.TrimPrefix(what, "pending ")
	switch {
	case err != nil:
		return amount
	case what == "session lifetime" || what == "idle timeout":
		return seconds(int(n))
	case what == "scope bytes" || what == "disk bytes" || resource.KindOf(slot) == resource.Bytes:
		return output.Bytes(n)
	}
	return amount
}
