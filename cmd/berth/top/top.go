// Package top has the command that shows what running sessions and agents use now.
package top

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// leastInterval limits the load of a screen on the server. Agents measure every 5 s.
const leastInterval = time.Second

// options are the flags of the command.
type options struct {
	agents, everyone, once bool
	interval               time.Duration
	sort                   string
}

// Command returns the command "berth top".
func Command(a *cli.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "top", Args: cli.Args(0, 0),
		Short: "Show what running sessions use now",
		Long: `Show the use of processors, memory and accelerators by your running sessions, the
busiest first, until you press q. The keys c, m, a and n sort by processors,
memory, accelerators and name. In a pipe, with --once or with -o json, it prints
the newest samples once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.interval < leastInterval {
				return cli.Usagef("--interval %s is below the minimum of %s", o.interval, leastInterval)
			}
			if _, ok := orders[o.sort]; !ok {
				return cli.Usagef("--sort %q is not cpu, mem, acc or name", o.sort)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			read, err := o.reader(cmd.Context(), c)
			if err != nil {
				return err
			}
			fd, terminal := cli.Terminal(a.Out)
			if _, keys := cli.Terminal(a.In); !terminal || !keys || o.once || a.Printer().Machine() {
				return printOnce(cmd.Context(), a, o, read)
			}
			return live(cmd.Context(), a, fd, o, read)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.agents, "agents", false, "show agents instead of sessions")
	f.BoolVar(&o.everyone, "all", false, "show all sessions that you can see, such as those of your project or, as an administrator, of the cluster")
	f.BoolVar(&o.once, "once", false, "print once and end")
	f.DurationVar(&o.interval, "interval", 5*time.Second, "time between two updates")
	f.StringVar(&o.sort, "sort", "cpu", "order: cpu, mem, acc or name")
	return cmd
}

// reader returns a function that reads the current loads.
func (o options) reader(ctx context.Context, c *client.Client) (func(context.Context) (screen, error), error) {
	if o.agents {
		return func(ctx context.Context) (screen, error) {
			list, err := c.AgentLoads(ctx)
			return agentScreen(list), err
		}, nil
	}
	filter := client.SessionFilter{Statuses: []client.Enum{"RUNNING"}}
	if !o.everyone {
		who, err := c.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		filter.Owner = who.User.ID
	}
	return func(ctx context.Context) (screen, error) {
		list, err := c.SessionLoads(ctx, filter)
		return sessionScreen(list, o.everyone), err
	}, nil
}

func printOnce(ctx context.Context, a *cli.App, o options, read func(context.Context) (screen, error)) error {
	s, err := read(ctx)
	if err != nil {
		return err
	}
	s.order(o.sort)
	return a.Table(s.Rows, func() *output.Table { return s.table(a.Now()) })
}
