package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

func openCommand(a *cli.App) *cobra.Command {
	var path string
	var noBrowser bool
	cmd := on(a, "open SESSION [APP|PORT]", "Open an app in the browser", cli.Args(1, 2),
		func(ctx context.Context, c *client.Client, s *client.Session, in client.AppActionInput) error {
			open := client.OpenAppInput{Session: in.Session, Kernel: in.Kernel, App: in.App, Path: path}
			if open.App == "" {
				name, err := onlyApp(ctx, c, s, in.Kernel)
				if err != nil {
					return err
				}
				open.App = name
			}
			if port, err := strconv.Atoi(open.App); err == nil {
				open.App, open.Port = "", &port
			}
			opened, err := c.OpenApp(ctx, open)
			if err != nil {
				return err
			}
			return a.OpenAddress(ctx, opened, noBrowser || a.Printer().Machine())
		})
	cmd.Long = `Open an app of a session in the browser, which starts the app if it does not run.
APP can be left out if the session has only one app. A port opens any program that
listens on it on the loopback interface of the container.

Without a display, or with --no-browser, it prints an address that works once and
within 30 seconds, so that you can open it on your own machine.`
	cmd.Example = `  berth app open train jupyter --path /tree/data
  berth app open train 8501 --no-browser`
	cmd.Flags().StringVar(&path, "path", "", "path and query to open in the app (default /)")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address")
	return cmd
}

// onlyApp returns the name of the app of a container that has only one.
func onlyApp(ctx context.Context, c *client.Client, s *client.Session, kernel string) (string, error) {
	list, err := c.Apps(ctx, s.ID, kernel)
	switch {
	case err != nil:
		return "", err
	case len(list) == 1:
		return list[0].Name, nil
	case len(list) == 0 && s.Status != "RUNNING":
		return "", fmt.Errorf("session %s is %s; apps can be opened while it is running: %w", s.Name, s.Status, errdefs.ErrFailedPrecondition)
	case len(list) == 0:
		return "", fmt.Errorf("no app is known in session %s; name the port of a program: %w", s.Name, errdefs.ErrNotFound)
	}
	return "", cli.Usagef("session %s has several apps; name one of %s", s.Name, strings.Join(names(list), ", "))
}
