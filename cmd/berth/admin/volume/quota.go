package volume

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// QuotaCommand returns the command "berth admin quota".
func QuotaCommand(a *cli.App) *cobra.Command {
	return cli.Group("quota", "Show the usage of users and projects on each volume, and set limits",
		quotaList(a), quotaSet(a))
}

func quotaTable(list ...client.QuotaScope) *output.Table {
	t := output.NewTable("OF", "VOLUME", "USED", "LIMIT", "FILES", "MAX FILES", "ENFORCED").Spare("MAX FILES", "FILES")
	for _, s := range list {
		t.Row(cli.HolderText(nil, s.HolderProject, s.HolderUser, "a "+s.Kind.String()), s.Volume.Name, cli.Amount(s.UsedBytes, output.Bytes),
			cli.Amount(s.EffectiveLimitBytes, output.Bytes), cli.Amount(s.UsedInodes, cli.Decimal), cli.Amount(s.LimitInodes, cli.Decimal), s.Enforcement)
	}
	return t
}

func quotaList(a *cli.App) *cobra.Command {
	return a.List("List the usage and limits of quota scopes", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.QuotaScopes(ctx, false)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return quotaTable(list...) })
	})
}

func quotaSet(a *cli.App) *cobra.Command {
	var user, project string
	var in client.SetQuotaScopeInput
	cmd := a.Verb("set VOLUME", "Limit the folders of a user or project on a volume, in place of the policies", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if cli.CountSet(user, project) != 1 {
				return cli.Usagef("name one of --user and --project")
			}
			v, err := cli.FindVolume(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.Volume = v.ID
			if in.User, err = cli.FindUserID(ctx, c, user); err != nil {
				return err
			}
			if in.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
				return err
			}
			s, err := c.SetQuotaScope(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(s, func() *output.Table { return quotaTable(*s) })
		})
	cmd.Long = `Limit the folders of a user or project on a volume, in place of the policies.
Without --bytes, the policies decide again; without --files, there is no limit of
files. A volume accepts the limits it can enforce: see berth admin volume show.`
	cmd.Example = "  berth admin quota set fast --user ada@example.org --bytes 500g --files 2000000"
	cmd.Flags().StringVar(&user, "user", "", "a user, by e-mail, username or id")
	cmd.Flags().StringVar(&project, "project", "", "a project, by name, domain/name or id")
	cli.OptionalFlag(cmd, &in.LimitBytes, "bytes", "`how much` they may hold, such as 100g", cli.ParseSize)
	cli.SetsField(cmd, "bytes", "limitBytes")
	cli.OptionalFlag(cmd, &in.LimitInodes, "files", "`how many` files, directories and links", func(text string) (int64, error) {
		n, err := cli.ParseCount(text)
		return int64(n), err
	})
	cli.SetsField(cmd, "files", "limitInodes")
	return cmd
}
