// Package account has the commands about a user's own account: logins, contexts,
// profile, password, second factor, tokens and keys.
package account

import (
	"bufio"
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// WhoamiCommand returns the command "berth whoami".
func WhoamiCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show your login and its server",
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			who, err := c.Viewer(cmd.Context())
			if err != nil {
				return err
			}
			if who.Due != nil {
				a.Note("Due before anything else: %s", map[client.Enum]string{
					"PASSWORD": "change your password, with berth passwd", "TOTP": "a second factor, with berth totp enable",
				}[*who.Due])
			}
			return a.Table(who, func() *output.Table {
				t := output.NewTable("USER", "ROLE", "DOMAIN", "PROJECTS", "SERVER")
				t.Row(who.User.Email, who.User.Role, who.User.Domain.Name, cli.Names(who.Projects), c.Base())
				return t
			})
		},
	}
}

// PasswdCommand returns the command "berth passwd".
func PasswdCommand(a *cli.App) *cobra.Command {
	var as client.Credentials
	var endAll bool
	cmd := &cobra.Command{
		Use:   "passwd",
		Short: "Change your password",
		Long: `Change your password. Without a terminal, the first line of standard input is the
current password and the second line the new one. All your logins end. Access
tokens, keypairs and SSH keys stay valid unless you add --end-credentials: do so
if someone else may know your password. Then log in again with berth login.`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			current, next, err := newPassword(cmd.Context(), a)
			if err != nil {
				return err
			}
			as.Password = current
			err = loggedIn(cmd.Context(), a, as, func(c *client.Client) error {
				return c.ChangePassword(cmd.Context(), current, next, endAll)
			})
			if err == nil {
				a.Note("Password changed.")
			}
			return err
		},
	}
	entryFlags(cmd, &as)
	cmd.Flags().BoolVar(&endAll, "end-credentials", false, "also end all your access tokens, keypairs and SSH keys")
	return cmd
}

func newPassword(ctx context.Context, a *cli.App) (current, next string, err error) {
	if _, ok := cli.Terminal(a.In); !ok {
		lines := bufio.NewScanner(a.In)
		if lines.Scan() {
			current = lines.Text()
		}
		if lines.Scan() {
			next = lines.Text()
		}
		if next == "" {
			return "", "", cli.Usagef("standard input must hold two lines: the present and the new password")
		}
		return current, next, lines.Err()
	}
	if current, err = a.AskSecret(ctx, "Present password: ", "standard input"); err != nil {
		return "", "", err
	}
	next, err = a.AskNewPassword(ctx, "standard input")
	return current, next, err
}
