package main

import (
	"context"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) quotaCommand() *cobra.Command {
	return group("quota", "Show the usage of users and projects on each volume, and set limits",
		a.quotaList(), a.quotaSet())
}

func quotaTable(list ...client.QuotaScope) *output.Table {
	t := output.NewTable("OF", "VOLUME", "USED", "LIMIT", "FILES", "MAX FILES", "ENFORCED").Spare("MAX FILES", "FILES")
	for _, s := range list {
		t.Row(holderText(nil, s.HolderProject, s.HolderUser, "a "+s.Kind), s.Volume.Name, amount(s.UsedBytes, output.Bytes),
			amount(s.EffectiveLimitBytes, output.Bytes), amount(s.UsedInodes, decimal), amount(s.LimitInodes, decimal), s.Enforcement)
	}
	return t
}

func (a *app) quotaList() *cobra.Command {
	return a.list("List the usage and limits of quota scopes", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.QuotaScopes(ctx, false)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return quotaTable(list...) })
	})
}

func (a *app) quotaSet() *cobra.Command {
	var user, project string
	var in client.SetQuotaScopeInput
	cmd := a.verb("set VOLUME", "Limit the folders of a user or project on a volume, in place of the policies", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if howMany(user, project) != 1 {
				return usagef("name one of --user and --project")
			}
			v, err := findVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.Volume = v.ID
			if in.User, err = findUserID(ctx, c, user); err != nil {
				return err
			}
			if in.Project, err = findProjectID(ctx, c, project); err != nil {
				return err
			}
			s, err := c.SetQuotaScope(ctx, in)
			if err != nil {
				return err
			}
			return a.table(s, func() *output.Table { return quotaTable(*s) })
		})
	cmd.Long = `Limit the folders of a user or project on a volume, in place of the policies.
Without --bytes, the policies decide again; without --files, there is no limit of
files. A volume accepts the limits it can enforce: see berth admin volume show.`
	cmd.Example = "  berth admin quota set fast --user ada@example.org --bytes 500g --files 2000000"
	cmd.Flags().StringVar(&user, "user", "", "a user, by e-mail, username or id")
	cmd.Flags().StringVar(&project, "project", "", "a project, by name, domain/name or id")
	given(cmd, &in.LimitBytes, "bytes", "`how much` they may hold, such as 100g", parseSize)
	sets(cmd, "bytes", "limitBytes")
	given(cmd, &in.LimitInodes, "files", "`how many` files, directories and links", func(text string) (int64, error) {
		n, err := parseCount(text)
		return int64(n), err
	})
	sets(cmd, "files", "limitInodes")
	return cmd
}
