package account

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/config"
	"github.com/berthhq/berth/cmd/berth/output"
)

// withWeb logs in through the page: the person confirms a code there, by whatever method they log in.
func withWeb(ctx context.Context, a *cli.App, f loginFlags, next *config.Context) (*client.Viewer, error) {
	if f.email != "" || f.passwordStdin || f.token != "" || f.entry != (client.Credentials{}) {
		return nil, cli.Usagef("--web cannot be used with --email, --password-stdin, --token, --code or --force")
	}
	c, err := client.New(next.URL, "", a.UserAgent())
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	begun, err := c.BeginDeviceLogin(ctx, host, f.days)
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", next.URL, err)
	}
	a.Note("Open this page and compare the code: %s", output.Clean(begun.CompleteURL))
	a.Note("Code: %s (valid for %d minutes)", output.Clean(begun.Code), begun.ExpiresIn/60)
	a.Browse(ctx, begun.CompleteURL)
	a.Note("Waiting for your confirmation …")
	limited, cancel := context.WithTimeout(ctx, time.Duration(begun.ExpiresIn)*time.Second)
	defer cancel()
	next.Token, next.TokenID, err = c.DeviceToken(limited, begun)
	switch {
	case ctx.Err() == nil && (limited.Err() != nil || errdefs.IsNotFound(err)):
		return nil, fmt.Errorf("the code was not confirmed in time; start again: %w", errdefs.ErrFailedPrecondition)
	case err != nil:
		return nil, err
	}
	if c, err = client.New(next.URL, next.Token, a.UserAgent()); err != nil {
		return nil, err
	}
	return c.Viewer(ctx)
}
