// Package app has the commands about apps: programs of a session that are used in the browser.
package app

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth app".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("app", "Use the apps of sessions in the browser",
		listCommand(a), openCommand(a), logsCommand(a), restartCommand(a), stopCommand(a), shareCommand(a), unshareCommand(a))
	return cli.Alias(cmd, "apps")
}

// on returns a command about the apps of a session. Its first argument is the session, and the
// optional second one is the app.
func on(a *cli.App, use, short string, args cobra.PositionalArgs, do func(context.Context, *client.Client, *client.Session, client.AppActionInput) error) *cobra.Command {
	kernel := ""
	cmd := a.Verb(use, short, args, func(ctx context.Context, c *client.Client, args []string) error {
		s, err := cli.FindSession(ctx, c, args[0])
		if err != nil {
			return err
		}
		in := client.AppActionInput{Session: s.ID, App: cli.First(args[1:])}
		if kernel != "" {
			k, err := cli.FindContainer(ctx, c, s.ID, kernel)
			if err != nil {
				return err
			}
			in.Kernel = k.ID
		}
		return do(ctx, c, s, in)
	})
	cmd.Flags().StringVar(&kernel, "kernel", "", "`container` of the session: main, sub1 and so on (default main)")
	cmd.ValidArgsFunction = complete(a)
	return cmd
}

// complete completes the name of a live session, then that of one of its apps.
func complete(a *cli.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return a.CompleteSession(cmd, args, typed)
		}
		return a.Propose(cmd.Context(), func(ctx context.Context, c *client.Client) ([]string, error) {
			s, err := cli.FindSession(ctx, c, args[0])
			if err != nil {
				return nil, err
			}
			list, err := c.Apps(ctx, s.ID, "")
			return names(list), err
		})
	}
}

func names(list []client.App) []string {
	all := make([]string, len(list))
	for i, app := range list {
		all[i] = app.Name
	}
	return all
}

func listCommand(a *cli.App) *cobra.Command {
	cmd := on(a, "ls SESSION", "List the apps of a session, with their status", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, s *client.Session, in client.AppActionInput) error {
			list, err := c.Apps(ctx, s.ID, in.Kernel)
			if err != nil {
				return err
			}
			if s.Status != "RUNNING" {
				a.Note("session %s is %s; apps can be opened while it is running", s.Name, s.Status)
			}
			return a.Table(list, func() *output.Table { return table(a, list...) })
		})
	return cli.Alias(cmd, "list")
}

func table(a *cli.App, list ...client.App) *output.Table {
	t := output.NewTable("NAME", "TITLE", "PORT", "SOURCE", "STATUS", "REASON", "SHARED", "LAST USED").Spare("SOURCE", "TITLE", "PORT", "LAST USED")
	for _, app := range list {
		t.Row(app.Name, app.Title, strconv.Itoa(app.Port), app.Source.String(), statusCell(app), app.Reason, sharing(a, app.Sharing), a.Moment(app.LastUsedAt))
	}
	return t
}

func statusCell(app client.App) output.Cell {
	c := output.Cell{Text: app.Status.String()}
	switch app.Status {
	case "RUNNING":
		c.Color = output.Green
	case "STARTING":
		c.Color = output.Yellow
	case "FAILED":
		c.Color = output.Red
	}
	return c
}

// sharing shows which other users can open an app, from which networks and for how long.
func sharing(a *cli.App, s *client.AppShare) string {
	if s == nil {
		return ""
	}
	text := s.Audience.String()
	if len(s.Networks) > 0 {
		text += " from " + strings.Join(s.Networks, ", ")
	}
	if s.ExpiresAt != nil {
		text += " for " + output.Duration(s.ExpiresAt.Sub(a.Now()))
	}
	return text
}

func logsCommand(a *cli.App) *cobra.Command {
	var raw bool
	size := int64(16 << 10)
	cmd := on(a, "logs SESSION APP", "Print the last output of an app that was started on demand", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, _ *client.Session, in client.AppActionInput) error {
			text, err := c.AppLog(ctx, in, int(size))
			if err != nil {
				return err
			}
			_, err = io.WriteString(cli.Calm(a.Out, raw), text)
			return err
		})
	cli.ParsedFlag(cmd, &size, "bytes", "print at most this `size`, for example 64k (default 16k)", cli.ParseSize)
	cli.RawFlag(cmd, &raw)
	return cli.Alias(cmd, "log")
}

func restartCommand(a *cli.App) *cobra.Command {
	return on(a, "restart SESSION APP", "Start an app, after ending it if it runs", cli.Args(2, 2), changed(a, (*client.Client).RestartApp))
}

func stopCommand(a *cli.App) *cobra.Command {
	return on(a, "stop SESSION APP", "End an app; opening it starts it again", cli.Args(2, 2), changed(a, (*client.Client).StopApp))
}

// changed changes an app and prints its new state.
func changed(a *cli.App, do func(*client.Client, context.Context, client.AppActionInput) (*client.App, error)) func(context.Context, *client.Client, *client.Session, client.AppActionInput) error {
	return func(ctx context.Context, c *client.Client, _ *client.Session, in client.AppActionInput) error {
		app, err := do(c, ctx, in)
		if err != nil {
			return err
		}
		return a.Table(app, func() *output.Table { return table(a, *app) })
	}
}
