// Package sessioncopy is the command "berth cp": it copies files to and from containers of running sessions,
// over the routes of the manager, so that neither SSH nor a key is needed.
package sessioncopy

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// copier is one run of the command.
type copier struct {
	app       *cli.App
	client    *client.Client
	at        client.ContainerRef
	recursive bool
	times     bool
	progress  *cli.Progress
}

// Command returns the command "berth cp".
func Command(a *cli.App) *cobra.Command {
	c := &copier{app: a}
	cmd := &cobra.Command{
		Use:   "cp [-r] SOURCE... TARGET",
		Short: "Copy files to or from a session",
		Long: `Copy files to or from a running session. Either the sources or the target are
in a session, as SESSION:PATH or SESSION.sub1:PATH. A relative PATH begins in
the home directory of the session, and patterns such as *.csv are expanded
there. For folders, without a session: berth folder put and get.

The image needs nothing for it. Interrupted copies of a file continue where
they stopped. Copies from a session leave out links.`,
		Example: `  berth cp train.py data.csv train:
  berth cp -r train:results/2026 ./results
  berth cp 'train:*.log' .`,
		Args: cli.Args(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, up, err := sideOf(args)
			if err != nil {
				return err
			}
			if err := c.reach(cmd.Context(), ref); err != nil {
				return err
			}
			sources := args[:len(args)-1]
			_, target, _ := parsePath(args[len(args)-1])
			if up {
				return c.up(cmd.Context(), sources, target)
			}
			return c.down(cmd.Context(), sources, target)
		},
	}
	cmd.Flags().BoolVarP(&c.recursive, "recursive", "r", false, "copy directories with their content")
	cmd.Flags().BoolVarP(&c.times, "preserve", "p", false, "keep the times of files")
	return cmd
}

func (c *copier) reach(ctx context.Context, ref string) error {
	var err error
	if c.client, err = c.app.Client(); err != nil {
		return err
	}
	ref, container := cli.SplitContainer(ref)
	s, err := cli.RunningSession(ctx, c.client, ref)
	if err != nil {
		return err
	}
	c.at.Session = s.ID
	var have []string
	for _, k := range s.Kernels {
		if k.Hostname == container {
			c.at.Kernel = k.ID
			return nil
		}
		have = append(have, k.Hostname)
	}
	return cli.NotFound("container", container, "the session has: "+strings.Join(have, ", "))
}

// parsePath reads SESSION:PATH. As with scp, a name with a slash before the colon is a local
// file.
func parsePath(text string) (session, path string, remote bool) {
	session, path, remote = strings.Cut(text, ":")
	if !remote || session == "" || strings.Contains(session, "/") {
		return "", text, false
	}
	return session, path, true
}

// sideOf returns the one session that the sources or the target are in; up reports whether it is the
// target.
func sideOf(args []string) (session string, up bool, err error) {
	target, _, up := parsePath(args[len(args)-1])
	from := ""
	for i, arg := range args[:len(args)-1] {
		session, _, remote := parsePath(arg)
		switch {
		case remote && up:
			return "", false, cli.Usagef("%s and %s are both in a session; copy through this machine, or through a folder that both have mounted", arg, args[len(args)-1])
		case i > 0 && session != from:
			return "", false, cli.Usagef("%s and %s are not in the same place; copy from one session at a time", args[0], arg)
		}
		from = session
	}
	if !up && from == "" {
		return "", false, cli.Usagef("no path is in a session; write SESSION:PATH for one side")
	}
	return target + from, up, nil
}
