package main

import (
	"context"

	"github.com/berthhq/berth/internal/client"
	"github.com/spf13/cobra"
)

func (a *app) totpCommand() *cobra.Command {
	return group("totp", "Work with your second factor", a.totpEnable(), a.totpDisable(), a.totpCodes())
}

func (a *app) totpEnable() *cobra.Command {
	return a.verb("enable", "Set up a second factor with an authenticator app", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			if _, ok := terminal(a.in); !ok {
				return usagef("no terminal to ask on for a code of the new second factor")
			}
			return a.enrol(ctx, c)
		})
}

func (a *app) totpDisable() *cobra.Command {
	var code string
	cmd := a.verb("disable", "Turn your second factor off", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) (err error) {
		password := a.env("BERTH_PASSWORD")
		if password == "" {
			if password, err = a.askSecret(ctx, "Password: ", "BERTH_PASSWORD"); err != nil {
				return err
			}
		}
		if code == "" {
			if code, err = a.ask(ctx, "Code: ", "--code"); err != nil {
				return err
			}
		}
		if err := c.DisableTOTP(ctx, password, code); err != nil {
			return err
		}
		a.note("The second factor is off.")
		return nil
	})
	cmd.Flags().StringVar(&code, "code", "", "code of the second factor, or a recovery code")
	return cmd
}

func (a *app) totpCodes() *cobra.Command {
	var code string
	cmd := a.verb("recovery-codes", "Replace your recovery codes by new ones", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) (err error) {
		if code == "" {
			if code, err = a.ask(ctx, "Code: ", "--code"); err != nil {
				return err
			}
		}
		codes, err := c.NewRecoveryCodes(ctx, code)
		if err != nil {
			return err
		}
		return a.recoveryCodes(codes)
	})
	cmd.Flags().StringVar(&code, "code", "", "code of the second factor")
	return cmd
}
