package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) sessionCommand() *cobra.Command {
	cmd := group("session", "Manage sessions",
		a.sessionList(), a.sessionShow(), a.sessionWhy(), a.sessionCreate(), a.sessionChange(), a.sessionLogs(), a.sessionExec(),
		a.sessionForward(), a.sessionEvents(), a.sessionRename(), a.sessionRemove())
	cmd.Aliases = []string{"sessions"}
	return cmd
}

// onSession makes a command whose first argument names a session.
func (a *app) onSession(cmd *cobra.Command, do func(context.Context, *client.Client, *client.Session, []string) error) *cobra.Command {
	cmd.ValidArgsFunction = a.completeSession
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		s, err := findSession(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, s, args[1:])
	}
	return cmd
}

// onDetail is onSession for commands that need all there is to know about it.
func (a *app) onDetail(cmd *cobra.Command, do func(context.Context, *client.Client, *client.SessionDetail) error) *cobra.Command {
	return a.onSession(cmd, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		d, err := c.Session(ctx, s.ID)
		if err != nil {
			return err
		}
		return do(ctx, c, d)
	})
}

func (a *app) completeSession(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := a.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	live, err := c.Sessions(cmd.Context(), client.SessionFilter{Live: true, Limit: 50})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for _, s := range live {
		all = append(all, s.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) sessionList() *cobra.Command {
	var f client.SessionFilter
	var all, mine bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List sessions: those that live, or all",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
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
			return a.table(list, func() *output.Table { return a.sessionTable(list) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&all, "all", "a", false, "also sessions that have ended")
	flags.BoolVar(&mine, "mine", false, "only your own")
	flags.StringSliceVar(&f.Statuses, "status", nil, "only these states, for example running,pending")
	flags.IntVar(&f.Limit, "limit", 100, "at most so many, newest first; 0 = all")
	return cmd
}

func (a *app) sessionTable(list []client.Session) *output.Table {
	t := output.NewTable("NAME", "STATUS", "TYPE", "IMAGE", "RESOURCES", "AGE", "OWNER", "ID").Spare("ID", "TYPE", "OWNER")
	for _, s := range list {
		t.Row(s.Name, statusCell(s), s.Type, s.Image.Name, output.Slots(s.Slots), output.Age(a.now(), s.CreatedAt), s.Owner.Title(), s.ID)
	}
	return t
}

func statusCell(s client.Session) output.Cell {
	c := output.Cell{Text: s.Status}
	switch s.Status {
	case "running":
		c.Color = output.Green
	case "error":
		c.Color = output.Red
	case "terminated", "cancelled":
		c.Color = output.Dim
		if s.ExitCode != nil {
			c.Text = fmt.Sprintf("%s (%d)", s.Status, *s.ExitCode)
		}
		if s.Result == "failure" {
			c.Color = output.Red
		}
	default:
		c.Color = output.Yellow
	}
	return c
}

func (a *app) sessionCreate() *cobra.Command {
	var f createFlags
	var wait, dry bool
	cmd := &cobra.Command{
		Use:   "create IMAGE [flags] [-- COMMAND [ARG...]]",
		Short: "Start an interactive session",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := split(cmd, args)
			if len(before) != 1 {
				return usagef("usage: %s", cmd.UseLine())
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			in, err := f.input(cmd.Context(), a, cmd, c, "interactive", before[0], command)
			if err != nil {
				return err
			}
			if dry {
				return a.try(cmd.Context(), c, in)
			}
			s, err := c.CreateSession(cmd.Context(), in)
			if err != nil {
				return err
			}
			if wait {
				if err := a.awaitRunning(cmd.Context(), c, s); err != nil {
					return err
				}
			}
			return a.created(s)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until it runs")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "create nothing; report whether it would start now, or why not")
	return cmd
}

// awaitRunning waits until the session runs and updates what is known of it.
func (a *app) awaitRunning(ctx context.Context, c *client.Client, s *client.Session) error {
	status := a.statusLine(false)
	defer status.Clear()
	err := c.WatchSession(ctx, s.ID, func(err error) { status.Pause(oneLine(err)) }, func(state client.SessionState) bool {
		status.Session(s.Name, state)
		return state.Status != "running" && !state.Ended()
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
		return fmt.Errorf("session %s ended: %s", s.Name, because(reason, s.StatusMessage))
	}
	return nil
}

func (a *app) sessionRename() *cobra.Command {
	return a.onSession(&cobra.Command{
		Use:   "rename SESSION NAME",
		Short: "Rename a session",
		Args:  count(2, 2),
	}, func(ctx context.Context, c *client.Client, s *client.Session, args []string) error {
		s, err := c.RenameSession(ctx, s.ID, args[0])
		if err != nil {
			return err
		}
		return a.created(s)
	})
}

func (a *app) sessionRemove() *cobra.Command {
	var force, wait bool
	cmd := &cobra.Command{
		Use:               "rm SESSION...",
		Aliases:           []string{"terminate", "stop"},
		Short:             "End sessions",
		Args:              count(1, -1),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.each(args, func(ref string) error {
				s, err := findSession(cmd.Context(), c, ref)
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

// each does something to every reference and continues after an error; the last
// error decides the exit code.
func (a *app) each(refs []string, do func(ref string) error) error {
	var last error
	for _, ref := range refs {
		err := do(ref)
		if err != nil {
			if last != nil {
				a.note("berth: %s", oneLine(last))
			}
			last = fmt.Errorf("%s: %w", ref, err)
			continue
		}
		if !a.print().Machine() {
			fmt.Fprintln(a.out, output.Clean(ref))
		}
	}
	return last
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
