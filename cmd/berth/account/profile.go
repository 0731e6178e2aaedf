package account

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/people"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// ProfileCommand returns the command "berth profile".
func ProfileCommand(a *cli.App) *cobra.Command {
	return cli.Group("profile", "Show and change your profile", profileShow(a), profileUpdate(a))
}

func profileShow(a *cli.App) *cobra.Command {
	return a.Verb("show", "Show your profile and permissions", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		who, err := c.Viewer(ctx)
		if err != nil {
			return err
		}
		return people.ShowUser(ctx, a, c, who.User.ID)
	})
}

func profileUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateProfileInput
	cmd := a.Verb("update", "Change your name, or the networks you may log in from", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		u, err := c.UpdateProfile(ctx, in)
		if err != nil {
			return err
		}
		return people.ShowUser(ctx, a, c, u.ID)
	})
	cli.OptionalText(cmd, &in.FullName, "full-name", "full `name`")
	cli.WordsFlag(cmd, &in.AllowedAddresses, "addresses", "`networks` from which you may come, with commas between, such as 10.0.0.0/8; none for all")
	cli.SetsField(cmd, "addresses", "allowedAddresses")
	return cmd
}
