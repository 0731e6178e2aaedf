// Package session has the commands about sessions, among them run, exec, logs and the
// explanation of why a session waits.
package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth session".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("session", "Manage sessions",
		listCommand(a), showCommand(a), whyCommand(a), createCommand(a), changeCommand(a), logsCommand(a), execCommand(a),
		forwardCommand(a), eventsCommand(a), renameCommand(a), removeCommand(a))
	cmd.Aliases = []string{"sessions"}
	return cmd
}

// onSession makes a command whose first argument names a session.
func onSession(a *cli.App, cmd *cobra.Command, do func(context.Context, *client.Client, *client.Session, []string) error) *cobra.Command {
	cmd.ValidArgsFunction = a.CompleteSession
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		s, err := cli.FindSession(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, s, args[1:])
	}
	return cmd
}

// onDetail is onSession for commands that need all there is to know about it.
func onDetail(a *cli.App, cmd *cobra.Command, do func(context.Context, *client.Client, *client.SessionDetail) error) *cobra.Command {
	return onSession(a, cmd, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		d, err := c.Session(ctx, s.ID)
		if err != nil {
			return err
		}
		return do(ctx, c, d)
	})
}

func listCommand(a *cli.App) *cobra.Command {
	var f client.SessionFilter
	var all, mine bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List sessions: those that live, or all",
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			f.Live = !all && len(f.Statuses) == 0
			if mine {
				who, err := c.Viewer(cmd.Context())
				if err != nil {
					return err
				}
				f.Owner = who.User.ID
			}
			list, err := c.Sessions(cmd.Context(), f)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return Table(a, list) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&all, "all", "a", false, "also sessions that have ended")
	flags.BoolVar(&mine, "mine", false, "only your own")
	cli.ListFlag(cmd, &f.Statuses, "status", "only these `states`, for example running,pending", cli.Enums)
	flags.IntVar(&f.Limit, "limit", 100, "at most so many, newest first; 0 = all")
	return cmd
}

// Table returns the table that shows these sessions.
func Table(a *cli.App, list []client.Session) *output.Table {
	t := output.NewTable("NAME", "STATUS", "TYPE", "IMAGE", "RESOURCES", "AGE", "OWNER", "ID").Spare("ID", "TYPE", "OWNER")
	for _, s := range list {
		t.Row(s.Name, statusCell(s), s.Type, s.Image.Name, output.Slots(s.Slots), output.Age(a.Now(), s.CreatedAt), s.Owner.Title(), s.ID)
	}
	return t
}

func statusCell(s client.Session) output.Cell {
	c := output.Cell{Text: s.Status.String()}
	switch s.Status {
	case "RUNNING":
		c.Color = output.Green
	case "ERROR":
		c.Color = output.Red
	case "TERMINATED", "CANCELLED":
		c.Color = output.Dim
		if s.ExitCode != nil {
			c.Text = fmt.Sprintf("%s (%d)", s.Status, *s.ExitCode)
		}
		if s.Result == "FAILURE" {
			c.Color = output.Red
		}
	default:
		c.Color = output.Yellow
	}
	return c
}

func createCommand(a *cli.App) *cobra.Command {
	var f createFlags
	var wait, dry bool
	cmd := &cobra.Command{
		Use:   "create IMAGE [flags] [-- COMMAND [ARG...]]",
		Short: "Start an interactive session",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := cli.Split(cmd, args)
			if len(before) != 1 {
				return cli.Usagef("usage: %s", cmd.UseLine())
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			in, err := f.input(cmd.Context(), a, cmd, c, "INTERACTIVE", before[0], command)
			if err != nil {
				return err
			}
			if dry {
				return try(cmd.Context(), a, c, in)
			}
			s, err := c.CreateSession(cmd.Context(), in)
			if err != nil {
				return err
			}
			if wait {
				if err := awaitRunning(cmd.Context(), a, c, s); err != nil {
					return err
				}
			}
			return created(a, s)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until it runs")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "create nothing; report whether it would start now, or why not")
	return cmd
}

// awaitRunning waits until the session runs and updates what is known of it.
func awaitRunning(ctx context.Context, a *cli.App, c *client.Client, s *client.Session) error {
	status := a.StatusLine(false)
	defer status.Clear()
	err := c.WatchSession(ctx, s.ID, func(err error) { status.Pause(cli.OneLine(err)) }, func(state client.SessionState) bool {
		status.Session(s.Name, state)
		return state.Status != "RUNNING" && !state.Ended()
	})
	if err != nil {
		return err
	}
	now, err := c.Session(ctx, s.ID)
	if err != nil {
		return err
	}
	*s = now.Session
	if s.Ended() {
		reason := s.Status
		if s.TerminationReason != nil {
			reason = *s.TerminationReason
		}
		return fmt.Errorf("session %s ended: %s", s.Name, because(reason.String(), s.StatusMessage))
	}
	return nil
}

func renameCommand(a *cli.App) *cobra.Command {
	return onSession(a, &cobra.Command{
		Use:   "rename SESSION NAME",
		Short: "Rename a session",
		Args:  cli.Args(2, 2),
	}, func(ctx context.Context, c *client.Client, s *client.Session, args []string) error {
		s, err := c.RenameSession(ctx, s.ID, args[0])
		if err != nil {
			return err
		}
		return created(a, s)
	})
}

func removeCommand(a *cli.App) *cobra.Command {
	var force, wait bool
	cmd := &cobra.Command{
		Use:               "rm SESSION...",
		Aliases:           []string{"terminate", "stop"},
		Short:             "End sessions",
		Args:              cli.Args(1, -1),
		ValidArgsFunction: a.CompleteSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.Each(args, func(ref string) error {
				s, err := cli.FindSession(cmd.Context(), c, ref)
				if err != nil {
					return err
				}
				if s, err = c.TerminateSession(cmd.Context(), s.ID, force); err != nil {
					return err
				}
				if !wait {
					return nil
				}
				return c.WatchSession(cmd.Context(), s.ID, nil, func(s client.SessionState) bool { return !s.Ended() })
			})
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "skip the grace period")
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until they have ended")
	return cmd
}

func quote(command []string) string {
	parts := make([]string, len(command))
	for i, c := range command {
		if c == "" || strings.ContainsAny(c, " \t\n\"'\\$`*?[]{}()<>|&;~#!") {
			c = "'" + strings.ReplaceAll(c, "'", `'\''`) + "'"
		}
		parts[i] = c
	}
	return strings.Join(parts, " ")
}
