package account

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// TOTPCommand returns the command "berth totp".
func TOTPCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("totp", "Manage your second factor", totpStatus(a), totpEnable(a), totpDisable(a), totpCodes(a))
	cmd.Long = `Manage your second factor: codes of an authenticator app, or recovery codes.

To change it, you log in once more, with your password from $BERTH_PASSWORD or a
prompt, and a code. The change itself needs another code, as each code works only
once: wait for the next code of your app, or use a recovery code. Without a
terminal the codes come from --code and --next-code.`
	return cmd
}

func totpStatus(a *cli.App) *cobra.Command {
	return a.Verb("status", "Show whether you have a second factor", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		who, err := c.Viewer(ctx)
		if err != nil {
			return err
		}
		return a.Table(map[string]any{"totpEnabledAt": who.TOTPEnabledAt}, func() *output.Table {
			t := output.NewTable("SECOND FACTOR", "SINCE")
			if who.TOTPEnabledAt == nil {
				t.Row("off", "")
			} else {
				t.Row("on", cli.Clock(*who.TOTPEnabledAt))
			}
			return t
		})
	})
}

func totpEnable(a *cli.App) *cobra.Command {
	cmd := onFactor(a, "enable", "Set up a second factor with an authenticator app",
		func(ctx context.Context, c *client.Client, _, _ string) error { return enrol(ctx, a, c) })
	cmd.Long = `Set up a second factor with an authenticator app, on a terminal. berth prints
recovery codes: store them, as they are not shown again.`
	return cmd
}

func totpDisable(a *cli.App) *cobra.Command {
	return onFactor(a, "disable", "Turn your second factor off", func(ctx context.Context, c *client.Client, password, next string) (err error) {
		if next, err = nextCode(ctx, a, next); err != nil {
			return err
		}
		if err = c.DisableTOTP(ctx, password, next); err == nil {
			a.Note("The second factor is off.")
		}
		return err
	})
}

func totpCodes(a *cli.App) *cobra.Command {
	return onFactor(a, "recovery-codes", "Replace your recovery codes", func(ctx context.Context, c *client.Client, _, next string) (err error) {
		if next, err = nextCode(ctx, a, next); err != nil {
			return err
		}
		codes, err := c.NewRecoveryCodes(ctx, next)
		if err != nil {
			return err
		}
		return recoveryCodes(a, codes)
	})
}

// nextCode asks for the code that follows the one used for the login.
func nextCode(ctx context.Context, a *cli.App, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return a.Ask(ctx, "Next code of your app (each works once), or a recovery code: ", "--next-code")
}

// onFactor returns a command that logs in again first.
func onFactor(a *cli.App, use, short string, do func(ctx context.Context, c *client.Client, password, next string) error) *cobra.Command {
	var as client.Credentials
	var next string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			if as.Password, err = ownPassword(ctx, a); err != nil {
				return err
			}
			return loggedIn(ctx, a, as, func(c *client.Client) error { return do(ctx, c, as.Password, next) })
		},
	}
	entryFlags(cmd, &as)
	if use != "enable" {
		cmd.Flags().StringVar(&next, "next-code", "", "code after the one that logs in, or a recovery code")
	}
	return cmd
}
