package main

import (
	"bufio"
	"context"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show your login and its server",
		Args:  count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			who, err := c.Viewer(cmd.Context())
			if err != nil {
				return err
			}
			if who.Due != nil {
				a.note("Due before anything else: %s", map[string]string{
					"password": "change your password, with berth passwd", "totp": "a second factor, with berth totp enable",
				}[*who.Due])
			}
			return a.table(who, func() *output.Table {
				t := output.NewTable("USER", "ROLE", "DOMAIN", "PROJECTS", "SERVER")
				t.Row(who.User.Email, who.User.Role, who.User.Domain.Name, names(who.Projects), c.Base())
				return t
			})
		},
	}
}

func (a *app) passwdCommand() *cobra.Command {
	var as client.Credentials
	var endAll bool
	cmd := &cobra.Command{
		Use:   "passwd",
		Short: "Change your password",
		Long: `Change your password. Without a terminal, the first line of standard input is the
current password and the second line the new one. All your logins end. Access
tokens, keypairs and SSH keys stay valid unless you add --end-credentials: do so
if someone else may know your password. Then log in again with berth login.`,
		Args: count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			current, next, err := a.newPassword(cmd.Context())
			if err != nil {
				return err
			}
			as.Password = current
			err = a.loggedIn(cmd.Context(), as, func(c *client.Client) error {
				return c.ChangePassword(cmd.Context(), current, next, endAll)
			})
			if err == nil {
				a.note("Password changed.")
			}
			return err
		},
	}
	entryFlags(cmd, &as)
	cmd.Flags().BoolVar(&endAll, "end-credentials", false, "also end all your access tokens, keypairs and SSH keys")
	return cmd
}

func (a *app) newPassword(ctx context.Context) (current, next string, err error) {
	if _, ok := terminal(a.in); !ok {
		lines := bufio.NewScanner(a.in)
		if lines.Scan() {
			current = lines.Text()
		}
		if lines.Scan() {
			next = lines.Text()
		}
		if next == "" {
			return "", "", usagef("standard input must hold two lines: the present and the new password")
		}
		return current, next, lines.Err()
	}
	if current, err = a.askSecret(ctx, "Present password: ", "standard input"); err != nil {
		return "", "", err
	}
	next, err = a.askNewPassword(ctx, "standard input")
	return current, next, err
}

func (a *app) askNewPassword(ctx context.Context, instead string) (string, error) {
	next, err := a.askSecret(ctx, "New password: ", instead)
	if err != nil {
		return "", err
	}
	again, err := a.askSecret(ctx, "New password again: ", instead)
	if err == nil && again != next {
		err = usagef("the new passwords differ")
	}
	return next, err
}

func names(refs []client.Ref) string {
	all := make([]string, len(refs))
	for i, r := range refs {
		all[i] = r.Name
	}
	return strings.Join(all, ", ")
}
