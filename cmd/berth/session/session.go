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
	"github.com/berthhq/berth/internal/shell"
)

// Command returns the command "berth session".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("session", "Manage sessions",
		listCommand(a), showCommand(a), whyCommand(a), createCommand(a), changeCommand(a), logsCommand(a), execCommand(a),
		forwardCommand(a), eventsCommand(a), statsCommand(a), renameCommand(a), tagCommand(a), cloneCommand(a), commitCommand(a), restartCommand(a), arrayCommand(a), removeCommand(a))
	cmd.Aliases = []string{"sessions"}
	return cmd
}

// onSession returns a command whose first argument names a session.
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

// onDetail is onSession for commands that need all details of the session.
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
	var all, mine, members bool
	var array string
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
			if array != "" {
				x, err := cli.FindArray(cmd.Context(), c, array)
				if err != nil {
					return err
				}
				f.Array, f.Live = x.ID, false
			}
			folded := !members && f.Array == "" && !a.Printer().Machine()
			f.Alone = folded
			list, err := c.Sessions(cmd.Context(), f)
			if err != nil {
				return err
			}
			var arrays []client.SessionArray
			if folded && len(f.Statuses) == 0 {
				arrays, err = c.SessionArrays(cmd.Context(), client.SessionArrayFilter{Owner: f.Owner, Tag: f.Tag, Live: f.Live, Limit: f.Limit})
				if err != nil {
					return err
				}
			}
			return a.Table(list, func() *output.Table { return foldedTable(a, list, arrays) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&all, "all", "a", false, "also sessions that have ended")
	flags.BoolVar(&mine, "mine", false, "only your own")
	cli.ListFlag(cmd, &f.Statuses, "status", "only these `states`, for example running,pending", cli.Enums)
	flags.StringVar(&f.Tag, "tag", "", "only those with this tag")
	flags.StringVar(&array, "array", "", "the members of this array, by `name` or id, ended ones included")
	flags.BoolVar(&members, "members", false, "list the members of arrays one by one, instead of one line for each array")
	flags.IntVar(&f.Limit, "limit", 100, "at most so many, newest first; 0 = all")
	return cmd
}

// Table returns the table that shows these sessions.
func Table(a *cli.App, list []client.Session) *output.Table {
	return foldedTable(a, list, nil)
}

// foldedTable is Table with one line for each array, newest first.
func foldedTable(a *cli.App, list []client.Session, arrays []client.SessionArray) *output.Table {
	t := output.NewTable("NAME", "STATUS", "TYPE", "IMAGE", "RESOURCES", "AGE", "OWNER", "TAGS", "ID").Spare("ID", "TAGS", "TYPE", "OWNER")
	row := func(x client.SessionArray) {
		t.Row(x.Name+"["+x.Indexes+"]", countsText(x.Counts), "array", "", "", output.Age(a.Now(), x.CreatedAt), x.Owner.Title(), "", x.ID)
	}
	for _, s := range list {
		for len(arrays) > 0 && arrays[0].CreatedAt.After(s.CreatedAt) {
			row(arrays[0])
			arrays = arrays[1:]
		}
		t.Row(s.Name, statusCell(s), s.Type, s.Image.Name, output.Slots(s.Slots), output.Age(a.Now(), s.CreatedAt), s.Owner.Title(), strings.Join(s.Tags, ","), s.ID)
	}
	for _, x := range arrays {
		row(x)
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
	s := starter{app: a, flags: &f}
	cmd := &cobra.Command{
		Use:   "create [IMAGE] [flags] [-- COMMAND [ARG...]]",
		Short: "Start an interactive session",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := cli.Split(cmd, args)
			image, err := f.image(cmd, before)
			if err != nil {
				return err
			}
			if s.open != "" && (s.dry || a.Printer().Machine()) {
				return cli.Usagef("--open cannot be used with --dry-run or with --output; use berth app open")
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			kind := client.Enum("INTERACTIVE")
			if f.template != "" {
				kind = "" // the template decides
			}
			return s.start(cmd, c, kind, image, command)
		},
	}
	f.register(cmd)
	f.fromTemplate(cmd)
	s.register(cmd)
	cmd.Flags().StringVar(&s.open, "open", "", "open this `app` in the browser, with the first folder of -v; the page waits until the session runs")
	return cmd
}

// starter starts a session, or only performs a dry run.
type starter struct {
	app       *cli.App
	flags     *createFlags
	wait, dry bool
	open      string // an app
}

func (s *starter) register(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&s.wait, "wait", "w", false, "wait until it runs")
	cmd.Flags().BoolVar(&s.dry, "dry-run", false, "create nothing; report whether it would start now, or why not")
}

func (s *starter) start(cmd *cobra.Command, c *client.Client, kind client.Enum, image string, command []string) error {
	in, err := s.flags.input(cmd.Context(), s.app, cmd, c, kind, image, command)
	if err != nil {
		return err
	}
	if s.dry {
		return try(cmd.Context(), s.app, c, in)
	}
	made, err := c.CreateSession(cmd.Context(), in)
	if err != nil {
		return err
	}
	if err := started(cmd.Context(), s.app, c, made, s.wait); err != nil || s.open == "" {
		return err
	}
	return openIn(cmd.Context(), s.app, c, made, s.open, in.Mounts)
}

// started prints a new session, after waiting for its start if requested.
func started(ctx context.Context, a *cli.App, c *client.Client, s *client.Session, wait bool) error {
	if wait {
		if err := awaitRunning(ctx, a, c, s); err != nil {
			return err
		}
	}
	return created(a, s)
}

// awaitRunning waits until the session runs, and updates its state.
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
			c = shell.Quote(c)
		}
		parts[i] = c
	}
	return strings.Join(parts, " ")
}
