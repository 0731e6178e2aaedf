package account

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/config"
)

// defaultServer is the default address of berthd up.
const defaultServer = "http://127.0.0.1:8420"

type loginFlags struct {
	email         string
	passwordStdin bool
	entry         client.Credentials
	token         string
	name          string
	days          int
	web           bool
}

// LoginCommand returns the command "berth login".
func LoginCommand(a *cli.App) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login [URL]",
		Short: "Log in and keep a token for the server",
		Long: `Log in with e-mail and password, or with --web on the page, or store an existing
token.

With --web, berth shows a code and opens the page, where you log in by any method,
such as an identity provider, and confirm the code. It needs no password here.

The password comes from standard input with --password-stdin, else from
$BERTH_PASSWORD, else from a prompt. It is not stored: berth creates an access
token, logs out and stores the token in a context (see: berth context). A code of
the second factor, or a recovery code, comes from --code or a prompt. If you must
set a new password, it comes from $BERTH_NEW_PASSWORD or a prompt. The URL
defaults to $BERTH_URL, then to the current context's, then
to ` + defaultServer + `.`,
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return doLogin(cmd.Context(), a, f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.email, "email", "", "e-mail of the user (default $BERTH_EMAIL, or a prompt)")
	flags.BoolVar(&f.web, "web", false, "log in on the page, in any browser, and confirm a code there")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "read the password from standard input")
	entryFlags(cmd, &f.entry)
	flags.StringVar(&f.token, "token", "", "store this access token instead; - reads it from standard input")
	flags.StringVar(&f.name, "name", "", "name of the context (default: the server's host)")
	flags.IntVar(&f.days, "expires", 90, "days until the token expires; 0 = never")
	return cmd
}

func doLogin(ctx context.Context, a *cli.App, f loginFlags, args []string) error {
	if err := oneself(a); err != nil {
		return err
	}
	_, file, err := a.Config()
	if err != nil {
		return err
	}
	base, err := serverFor(a, file, args)
	if err != nil {
		return err
	}
	next := config.Context{Name: f.name, URL: base}
	if next.Name == "" {
		u, err := url.Parse(base)
		if err != nil {
			return cli.BadUsage(err)
		}
		next.Name = u.Host
	}
	var who *client.Viewer
	switch {
	case f.web:
		who, err = withWeb(ctx, a, f, &next)
	case f.token != "":
		who, err = withToken(ctx, a, f, &next)
	default:
		who, err = withPassword(ctx, a, f, &next)
	}
	if err != nil {
		return err
	}
	path, file, err := a.Config() // read again, because the login stored its device in the file
	if err != nil {
		return err
	}
	old, _ := file.Get(next.Name)
	var replaced config.Context
	if old != nil {
		replaced = *old
	}
	next.User = who.User.Email
	file.Set(next)
	if err := file.Save(path); err != nil {
		return err
	}
	if replaced.TokenID != "" && replaced.URL == next.URL {
		revoke(ctx, a, replaced, true) // the new token would never be used
	}
	a.Note("Logged in to %s as %s (context %s).", next.URL, next.User, next.Name)
	if who.InitialPassword {
		a.Note("You still use the generated first password; change it with: berth passwd")
	}
	return nil
}

func serverFor(a *cli.App, file *config.File, args []string) (string, error) {
	base := defaultServer
	if current, _ := file.Get(a.ContextName); current != nil {
		base = current.URL
	}
	if u := a.Env("BERTH_URL"); u != "" {
		base = u
	}
	if len(args) > 0 {
		base = args[0]
	}
	bare := !strings.Contains(base, "://")
	if bare {
		base = "https://" + base
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" {
		return "", cli.Usagef("%q is not a server URL such as https://berth.example.org", base)
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if bare && here {
		u.Scheme = "http"
	}
	if u.Scheme == "http" && !here {
		a.Note("Warning: %s is not encrypted; others on the way can read your password.", u.Redacted())
	}
	return u.String(), nil
}

func withToken(ctx context.Context, a *cli.App, f loginFlags, next *config.Context) (*client.Viewer, error) {
	next.Token = f.token
	if f.token == "-" {
		line, err := cli.ReadLine(a.In)
		if err != nil {
			return nil, err
		}
		next.Token = line
	}
	c, err := client.New(next.URL, next.Token, a.UserAgent())
	if err != nil {
		return nil, err
	}
	return c.Viewer(ctx)
}

func withPassword(ctx context.Context, a *cli.App, f loginFlags, next *config.Context) (*client.Viewer, error) {
	c, err := client.New(next.URL, "", a.UserAgent())
	if err != nil {
		return nil, err
	}
	as := f.entry
	if as.Email, as.Password, err = credentials(ctx, a, f); err != nil {
		return nil, err
	}
	in, err := signIn(ctx, a, c, as)
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", next.URL, err)
	}
	var who *client.Viewer
	var token client.AccessToken
	var secret string
	if err = payDues(ctx, a, c, in.Due, as.Password); err == nil {
		who, token, secret, err = makeToken(ctx, a, c, f.days)
	}
	// An interrupted login is ended too.
	if logoutErr := c.Logout(context.WithoutCancel(ctx)); err == nil && logoutErr != nil {
		err = fmt.Errorf("end the login: %w", logoutErr)
	}
	next.Token, next.TokenID = secret, token.ID
	return who, err
}

func makeToken(ctx context.Context, a *cli.App, c *client.Client, days int) (*client.Viewer, client.AccessToken, string, error) {
	who, err := c.Viewer(ctx)
	if err != nil {
		return nil, client.AccessToken{}, "", err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	var expires time.Time
	if days > 0 {
		expires = a.Now().AddDate(0, 0, days)
	}
	token, secret, err := c.CreateAccessToken(ctx, fmt.Sprintf("berth on %s %s", host, a.Now().UTC().Format("2006-01-02 150405")), expires)
	if err == nil && secret == "" {
		err = fmt.Errorf("the server gave no secret for the new token: %w", errdefs.ErrInternal)
	}
	return who, token, secret, err
}

func credentials(ctx context.Context, a *cli.App, f loginFlags) (email, password string, err error) {
	if email = f.email; email == "" {
		email = a.Env("BERTH_EMAIL")
	}
	if email == "" {
		if email, err = a.Ask(ctx, "E-mail: ", "--email"); err != nil {
			return "", "", err
		}
	}
	if f.passwordStdin {
		password, err = cli.ReadLine(a.In)
		return email, password, err
	}
	if password = a.Env("BERTH_PASSWORD"); password != "" {
		return email, password, nil
	}
	password, err = a.AskSecret(ctx, "Password: ", "--password-stdin or BERTH_PASSWORD")
	return email, password, err
}

// LogoutCommand returns the command "berth logout".
func LogoutCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Revoke the token and forget the context",
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneself(a); err != nil {
				return err
			}
			path, file, err := a.Config()
			if err != nil {
				return err
			}
			c, err := file.Get(a.ContextName)
			if err != nil {
				return err
			}
			if c == nil {
				return fmt.Errorf("not logged in: %w", errdefs.ErrFailedPrecondition)
			}
			gone := *c
			revoke(cmd.Context(), a, gone, false)
			file.Remove(gone.Name)
			if err := file.Save(path); err != nil {
				return err
			}
			a.Note("Logged out of %s.", gone.URL)
			return nil
		},
	}
}

// revoke ends a stored token, unless it is being replaced and credentials that were created with it
// are in use. After an error, the context is still removed.
func revoke(ctx context.Context, a *cli.App, c config.Context, replaced bool) {
	err := func() error {
		cl, err := client.New(c.URL, c.Token, a.UserAgent())
		if err != nil {
			return err
		}
		id := c.TokenID
		if id == "" {
			tokens, err := cl.AccessTokens(ctx)
			if err != nil {
				return err
			}
			for _, t := range tokens {
				if t.Prefix != "" && strings.HasPrefix(c.Token, t.Prefix) {
					id = t.ID
				}
			}
		}
		if id == "" {
			return fmt.Errorf("the server does not list it: %w", errdefs.ErrNotFound)
		}
		made, err := madeWith(ctx, cl, id)
		if err != nil {
			return err
		}
		if replaced && made > 0 {
			a.Note("The old token stays, since tokens or keys were created with it (%d) and would end with it. To end all: berth token revoke %s", made, id)
			return nil
		}
		if made > 0 {
			a.Note("Tokens and keys that were created with the token end too: %d", made)
		}
		return cl.RevokeAccessToken(ctx, id)
	}()
	if err != nil && !errdefs.IsUnauthorized(err) { // the token has ended already
		a.Note("Warning: the old token of %s was not revoked: %s", c.URL, cli.OneLine(err))
	}
}

// oneself rejects --as for commands about the caller's own credentials.
func oneself(a *cli.App) error {
	if a.ActAs != "" {
		return cli.Usagef("--as cannot be used with login and logout")
	}
	return nil
}
