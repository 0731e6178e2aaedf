package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func tagCommand(a *cli.App) *cobra.Command {
	var remove []string
	cmd := onSession(a, &cobra.Command{
		Use:     "tag SESSION [TAG...]",
		Short:   "Add tags to a session, or remove tags",
		Example: "  berth session tag lab run=3\n  berth session tag lab --remove run=3",
		Args:    cli.Args(1, -1),
	}, func(ctx context.Context, c *client.Client, s *client.Session, more []string) error {
		if len(more)+len(remove) == 0 {
			return cli.Usagef("name a tag to add, or set --remove")
		}
		tags := slices.DeleteFunc(slices.Clone(s.Tags), func(tag string) bool { return slices.Contains(remove, tag) })
		for _, tag := range more {
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
		if tags == nil {
			tags = []string{}
		}
		s, err := c.SetSessionTags(ctx, s.ID, tags)
		if err != nil {
			return err
		}
		return a.Printer().Print(s, func() error {
			_, err := fmt.Fprintln(a.Out, output.Clean(s.Name+": "+strings.Join(s.Tags, ", ")))
			return err
		})
	})
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "remove this `tag` (repeatable)")
	cli.SetsField(cmd, "remove", "tags")
	return cmd
}

func cloneCommand(a *cli.App) *cobra.Command {
	var f createFlags
	var image string
	s := starter{app: a, flags: &f}
	cmd := &cobra.Command{
		Use:               "clone SESSION [flags] [-- COMMAND [ARG...]]",
		Short:             "Start a session with the request of another one, which may have ended",
		Example:           "  berth session clone lab --name lab2 --mem 8g",
		ValidArgsFunction: a.CompleteSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := cli.Split(cmd, args)
			if len(before) != 1 {
				return cli.Usagef("usage: %s", cmd.UseLine())
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			from, err := cli.FindSession(cmd.Context(), c, before[0])
			if err != nil {
				return err
			}
			f.from = from.ID
			return s.start(cmd, c, "", image, command)
		},
	}
	f.register(cmd)
	s.register(cmd)
	cmd.Flags().StringVar(&image, "image", "", "another image")
	return cmd
}

func restartCommand(a *cli.App) *cobra.Command {
	var wait bool
	cmd := onSession(a, &cobra.Command{
		Use:   "restart SESSION",
		Short: "Start a session again with the same request and name; one that runs is ended first",
		Args:  cli.Args(1, 1),
	}, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		s, err := c.RestartSession(ctx, s.ID)
		if err != nil {
			return err
		}
		return started(ctx, a, c, s, wait)
	})
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until it runs")
	return cmd
}
