package main

import (
	"context"

	"github.com/berthhq/berth/internal/client"
	"github.com/spf13/cobra"
)

func (a *app) userResetPassword() *cobra.Command {
	var stdin bool
	cmd := a.verb("reset-password USER", "Give a user a password that he must change, and end his logins", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := findUserID(ctx, c, args[0])
			if err != nil {
				return err
			}
			password := ""
			if stdin {
				if password, err = readLine(a.in); err != nil {
					return err
				}
			}
			made, err := c.ResetPassword(ctx, id, password)
			if err != nil {
				return err
			}
			if made.Password == nil {
				a.note("The password of %s is set; he must change it when he logs in.", made.User.Email)
			}
			return a.secret(made, made.Password, "The password of "+made.User.Email+" is shown this once; he must change it when he logs in.")
		})
	cmd.Long = `Give a user a password that he must change when he logs in, and end all his
logins. The server makes one and it is printed, unless one comes from standard
input with --password-stdin.`
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func (a *app) userResetTOTP() *cobra.Command {
	return a.verb("reset-totp USER...", "Turn off the second factor of users who lost theirs", count(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			return a.each(args, func(ref string) error {
				id, err := findUserID(ctx, c, ref)
				if err == nil {
					_, err = c.ResetTOTP(ctx, id)
				}
				return err
			})
		})
}
