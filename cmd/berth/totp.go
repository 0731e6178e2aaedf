package main

import (
	"context"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) totpCommand() *cobra.Command {
	cmd := group("totp", "Manage your second factor", a.totpStatus(), a.totpEnable(), a.totpDisable(), a.totpCodes())
	cmd.Long = `Manage your second factor: codes of an authenticator app, or recovery codes.

To change it, you log in once more, with your password from $BERTH_PASSWORD or a
prompt, and a code. The change itself needs another code, as each code works only
once: wait for the next code of your app, or use a recovery code. Without a
terminal the codes come from --code and --next-code.`
	return cmd
}

func (a *app) totpStatus() *cobra.Command {
	return a.verb("status", "Show whether you have a second factor", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		who, err := c.Viewer(ctx)
		if err != nil {
			return err
		}
		return a.table(map[string]any{"totpEnabledAt": who.TOTPEnabledAt}, func() *output.Table {
			t := output.NewTable("SECOND FACTOR", "SINCE")
			if who.TOTPEnabledAt == nil {
				t.Row("off", "")
			} else {
				t.Row("on", clock(*who.TOTPEnabledAt))
			}
			return t
		})
	})
}

func (a *app) totpEnable() *cobra.Command {
	cmd := a.onFactor("enable", "Set up a second factor with an authenticator app",
		func(ctx context.Context, c *client.Client, _, _ string) error { return a.enrol(ctx, c) })
	cmd.Long = `Set up a second factor with an authenticator app, on a terminal. berth prints
recovery codes: store them, as they are not shown again.`
	return cmd
}

func (a *app) totpDisable() *cobra.Command {
	return a.onFactor("disable", "Turn your second factor off", func(ctx context.Context, c *client.Client, password, next string) (err error) {
		if next, err = a.nextCode(ctx, next); err != nil {
			return err
		}
		if err = c.DisableTOTP(ctx, password, next); err == nil {
			a.note("The second factor is off.")
		}
		return err
	})
}

func (a *app) totpCodes() *cobra.Command {
	return a.onFactor("recovery-codes", "Replace your recovery codes", func(ctx context.Context, c *client.Client, _, next string) (err error) {
		if next, err = a.nextCode(ctx, next); err != nil {
			return err
		}
		codes, err := c.NewRecoveryCodes(ctx, next)
		if err != nil {
			return err
		}
		return a.recoveryCodes(codes)
	})
}

// nextCode is the code that comes after the one that let in.
func (a *app) nextCode(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return a.ask(ctx, "Next code of your app (each works once), or a recovery code: ", "--next-code")
}

// onFactor is a command that logs in once more.
func (a *app) onFactor(use, short string, do func(ctx context.Context, c *client.Client, password, next string) error) *cobra.Command {
	var as client.Credentials
	var next string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			if as.Password, err = a.ownPassword(ctx); err != nil {
				return err
			}
			return a.loggedIn(ctx, as, func(c *client.Client) error { return do(ctx, c, as.Password, next) })
		},
	}
	entryFlags(cmd, &as)
	if use != "enable" {
		cmd.Flags().StringVar(&next, "next-code", "", "code after the one that logs in, or a recovery code")
	}
	return cmd
}
