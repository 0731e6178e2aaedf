package account

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// codeTries is the number of codes that one login asks for.
const codeTries = 3

// signIn logs in. It asks for the second factor if one is needed, and whether another login may be
// ended if there are too many.
func signIn(ctx context.Context, a *cli.App, c *client.Client, as client.Credentials) (*client.Login, error) {
	_, interactive := cli.Terminal(a.In)
	as.Device = knownDevice(a, c.Base())
	for tries := 0; ; {
		in, err := c.LoginWith(ctx, as)
		var refused *client.Error
		if !errors.As(err, &refused) {
			if err == nil {
				keepDevice(a, c.Base(), in.Device)
			}
			return in, err
		}
		switch {
		case refused.Field == "code" && !interactive && as.Code == "":
			return nil, fmt.Errorf("this login needs a code of the second factor; give it with --code: %w", errdefs.ErrUnauthenticated)
		case refused.Field == "code" && interactive && tries < codeTries:
			if as.Code != "" {
				a.Note("%s", cli.OneLine(err))
			}
			if as.Code, err = a.Ask(ctx, "Code from your authenticator app, or a recovery code: ", "--code"); err != nil {
				return nil, err
			}
			tries++
		case refused.Field == "force" && !interactive:
			return nil, fmt.Errorf("%w; end the oldest with --force", err)
		case refused.Field == "force" && !as.Force:
			a.Note("%s.", cli.OneLine(err))
			if as.Force, err = a.Agree(ctx, "End your oldest login?"); err != nil {
				return nil, err
			}
			if !as.Force {
				return nil, fmt.Errorf("not logged in; no other login was ended: %w", errdefs.ErrFailedPrecondition)
			}
		default:
			return nil, err
		}
	}
}

// knownDevice returns the cookie of an earlier login to the server, or "".
func knownDevice(a *cli.App, server string) string {
	_, file, err := a.Config()
	if err != nil {
		return "" // the error is reported where the configuration is needed
	}
	return file.Devices[server]
}

// keepDevice stores the cookie of a login. Errors are ignored, because a login works without it.
func keepDevice(a *cli.App, server, device string) {
	if device == "" {
		return
	}
	path, file, err := a.Config()
	if err == nil {
		file.Know(server, device)
		err = file.Save(path)
	}
	if err != nil {
		a.Note("Warning: the server will not know this device at the next login: %s", cli.OneLine(err))
	}
}

// entryFlags adds the flags of every login.
func entryFlags(cmd *cobra.Command, as *client.Credentials) {
	cmd.Flags().StringVar(&as.Code, "code", "", "code of the second factor, or a recovery code")
	cmd.Flags().BoolVar(&as.Force, "force", false, "end your oldest login when there are as many as are allowed")
}

// loggedIn runs an operation that needs a login, because a token is not enough. It logs in with the
// password of the token's owner, and logs out again.
func loggedIn(ctx context.Context, a *cli.App, as client.Credentials, do func(c *client.Client) error) error {
	if err := oneself(a); err != nil {
		return err
	}
	stored, err := a.Client()
	if err != nil {
		return err
	}
	who, err := stored.Viewer(ctx)
	if err != nil {
		return err
	}
	c, err := client.New(stored.Base(), "", a.UserAgent())
	if err != nil {
		return err
	}
	as.Email = who.User.Email
	if _, err := signIn(ctx, a, c, as); err != nil {
		return err
	}
	err = do(c)
	// An interrupted login is ended too, unless all logins have ended already.
	if logoutErr := c.Logout(context.WithoutCancel(ctx)); err == nil && logoutErr != nil && !errdefs.IsUnauthorized(logoutErr) {
		err = fmt.Errorf("end the login: %w", logoutErr)
	}
	return err
}

// ownPassword asks for the password of the caller.
func ownPassword(ctx context.Context, a *cli.App) (string, error) {
	if password := a.Env("BERTH_PASSWORD"); password != "" {
		return password, nil
	}
	return a.AskSecret(ctx, "Password: ", "BERTH_PASSWORD")
}

// payDues does the required first steps after a login: a new password and a second factor.
func payDues(ctx context.Context, a *cli.App, c *client.Client, due, password string) error {
	if due == "password" {
		next := a.Env("BERTH_NEW_PASSWORD")
		if next == "" {
			if _, ok := cli.Terminal(a.In); !ok {
				return fmt.Errorf("your password must be changed first; run berth login on a terminal, or set BERTH_NEW_PASSWORD: %w", errdefs.ErrPermissionDenied)
			}
			a.Note("Your password must be changed before anything else.")
			var err error
			if next, err = a.AskNewPassword(ctx, "BERTH_NEW_PASSWORD"); err != nil {
				return err
			}
		}
		if err := c.ChangePassword(ctx, password, next, false); err != nil {
			return err
		}
		a.Note("Password changed.")
		who, err := c.Viewer(ctx)
		if err != nil {
			return err
		}
		due = ""
		if who.Due != nil {
			due = who.Due.String()
		}
	}
	if due != "totp" {
		return nil
	}
	if _, ok := cli.Terminal(a.In); !ok {
		return fmt.Errorf("your domain requires a second factor; run berth login on a terminal, or log in to %s in a browser, to set one up: %w", c.Base(), errdefs.ErrPermissionDenied)
	}
	a.Note("Your domain requires a second factor before anything else.")
	return enrol(ctx, a, c)
}

// enrol sets up a second factor. The recovery codes go to standard output.
func enrol(ctx context.Context, a *cli.App, c *client.Client) error {
	made, err := c.StartTOTP(ctx)
	if err != nil {
		return err
	}
	a.Note("Add this to your authenticator app, then type the code it shows.")
	a.Note("  secret  %s", made.Secret)
	a.Note("  link    %s", made.URL)
	for try := 1; ; try++ {
		code, err := a.Ask(ctx, "Code: ", "a terminal")
		if err != nil {
			return err
		}
		codes, err := c.ConfirmTOTP(ctx, code)
		if err == nil {
			return recoveryCodes(a, codes)
		}
		if try == codeTries || !errdefs.IsInvalidArgument(err) && !errdefs.IsUnauthorized(err) {
			return err
		}
		a.Note("%s", cli.OneLine(err))
	}
}

func recoveryCodes(a *cli.App, codes []string) error {
	a.Note("The second factor is on. Keep these recovery codes, each lets you in once, and they are not shown again:")
	return a.Printer().Print(map[string][]string{"codes": codes}, func() error {
		for _, code := range codes {
			fmt.Fprintln(a.Out, output.Clean(code))
		}
		return nil
	})
}
