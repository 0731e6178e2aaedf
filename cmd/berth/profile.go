package main

import (
	"context"

	"github.com/berthhq/berth/client"
	"github.com/spf13/cobra"
)

func (a *app) profileCommand() *cobra.Command {
	return group("profile", "Show and change your profile", a.profileShow(), a.profileUpdate())
}

func (a *app) profileShow() *cobra.Command {
	return a.verb("show", "Show your profile and permissions", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		who, err := c.Viewer(ctx)
		if err != nil {
			return err
		}
		return a.showUser(ctx, c, who.User.ID)
	})
}

func (a *app) profileUpdate() *cobra.Command {
	var in client.UpdateProfileInput
	cmd := a.verb("update", "Change your name, or the networks you may log in from", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		if err := changes(in); err != nil {
			return err
		}
		u, err := c.UpdateProfile(ctx, in)
		if err != nil {
			return err
		}
		return a.showUser(ctx, c, u.ID)
	})
	givenText(cmd, &in.FullName, "full-name", "full `name`")
	givenWords(cmd, &in.AllowedAddresses, "addresses", "`networks` from which you may come, with commas between, such as 10.0.0.0/8; none for all")
	sets(cmd, "addresses", "allowedAddresses")
	return cmd
}
