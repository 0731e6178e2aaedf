package people

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func userResetPassword(a *cli.App) *cobra.Command {
	var stdin, keep bool
	cmd := a.Verb("reset-password USER", "Set a temporary password and revoke the user's credentials", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := cli.FindUserID(ctx, c, args[0])
			if err != nil {
				return err
			}
			password := ""
			if stdin {
				if password, err = cli.ReadLine(a.In); err != nil {
					return err
				}
			}
			made, err := c.ResetPassword(ctx, id, password, keep)
			if err != nil {
				return err
			}
			if made.Password == nil {
				a.Note("The password of %s is set; they must change it at the next login.", made.User.Email)
			}
			return a.PrintSecret(made, made.Password, "The password of "+made.User.Email+" is shown only once; they must change it at the next login.")
		})
	cmd.Long = `Set a password that the user must change at the next login. All their logins,
access tokens, keypairs and SSH keys are revoked; with --keep-credentials only the
logins are. The server generates the password and berth prints it, unless it comes
from standard input with --password-stdin.`
	cmd.Flags().BoolVar(&keep, "keep-credentials", false, "leave access tokens, keypairs and SSH keys as they are")
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func userResetTOTP(a *cli.App) *cobra.Command {
	return a.OnEach("reset-totp USER", "Turn off the second factor of users who lost theirs", cli.FindUserID,
		func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.ResetTOTP(ctx, id)
			return err
		})
}

func userPurge(a *cli.App) *cobra.Command {
	var in client.DeleteUserInput
	var to string
	var yes, detach bool
	cmd := a.Verb("purge USER", "Remove a user permanently", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if to != "" && in.DeleteFolders {
			return cli.Usagef("choose one of --folders-to and --delete-folders")
		}
		u, err := cli.FindUser(ctx, c, args[0])
		if err != nil {
			return err
		}
		if u.Status == "ACTIVE" {
			return fmt.Errorf("%s is active; first: berth admin user deactivate %s: %w", u.Email, u.Email, errdefs.ErrFailedPrecondition)
		}
		if in.FoldersTo, err = cli.FindUserID(ctx, c, to); err != nil {
			return err
		}
		if err := a.Confirm(ctx, "user", u.Email, yes); err != nil {
			return err
		}
		in.ID = u.ID
		t, err := c.DeleteUser(ctx, in)
		if err != nil {
			return err
		}
		if detach {
			return a.Table(t, func() *output.Table { return task.Table(a, *t) })
		}
		return task.Await(ctx, a, c, t)
	})
	cmd.Long = `Remove an inactive user permanently: end their sessions and credentials, transfer
their folders to another user of the domain or delete them, and remove the
account. The audit log keeps their e-mail. This is a background task: see berth
admin task.`
	cmd.Example = "  berth admin user deactivate kim@example.org\n  berth admin user purge kim@example.org --folders-to lee@example.org"
	flags := cmd.Flags()
	flags.StringVar(&to, "folders-to", "", "the user of the domain who gets the folders")
	flags.BoolVar(&in.DeleteFolders, "delete-folders", false, "delete the folders of the user and everything in them")
	flags.BoolVar(&detach, "detach", false, "do not wait until it is done")
	cli.YesFlag(cmd, &yes)
	return cmd
}
