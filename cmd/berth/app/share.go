package app

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

func shareCommand(a *cli.App) *cobra.Command {
	var in client.ShareAppInput
	var expires string
	share := func(c *client.Client, ctx context.Context, app client.AppActionInput) (*client.App, error) {
		if in.Audience == "" {
			return nil, cli.Usagef("name the users who can open it: --with project, everyone or public")
		}
		end, err := a.ParseEnd("--expires", expires)
		if err != nil {
			return nil, err
		}
		in.Session, in.App, in.Kernel, in.ExpiresAt = app.Session, app.App, app.Kernel, end
		return c.ShareApp(ctx, in)
	}
	cmd := on(a, "share SESSION APP --with project|everyone|public", "Let other users open an app, or change who can", cli.Args(2, 2), changed(a, share))
	cmd.Long = `Let other users open an app: the members of the session's project, every user
who is logged in, or everybody without a login (public), as far and as long as a
resource policy of the session allows. They work in the app with the permissions
of the session.
Sharing an app again replaces the networks and the end of its sharing.`
	cmd.Example = `  berth app share train tensorboard --with project
  berth app share train 8501 --with everyone --expires 8h --network 10.1.0.0/16
  berth app share train demo --with public --expires 1h`
	cli.ParsedFlag(cmd, &in.Audience, "with", "`users` who can open it: project (its members), everyone (who is logged in) or public (without a login)", cli.Choice("project", "everyone", "public"))
	cmd.Flags().StringVar(&expires, "expires", "never", "when the sharing ends: a date, a time, a span such as 8h, or never (with the session; for public, at the latest time that the policy allows)")
	cmd.Flags().StringArrayVar(&in.Networks, "network", nil, "`network` from which they can open it, such as 10.1.0.0/16 (repeatable; default: from everywhere)")
	cli.SetsField(cmd, "with", "audience")
	cli.SetsField(cmd, "expires", "expiresAt")
	cli.SetsField(cmd, "network", "networks")
	return cmd
}

func unshareCommand(a *cli.App) *cobra.Command {
	cmd := on(a, "unshare SESSION APP", "Stop sharing an app", cli.Args(2, 2), changed(a, (*client.Client).UnshareApp))
	cmd.Long = "Stop sharing an app. Open connections of other users are closed."
	return cmd
}
