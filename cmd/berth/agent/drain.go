package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func findAgentID(ctx context.Context, c *client.Client, ref string) (string, error) {
	g, err := cli.FindAgent(ctx, c, ref)
	if err != nil {
		return "", err
	}
	return g.ID, nil
}

func cordonCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := a.OnEach("cordon AGENT", "Start nothing new on agents; running sessions continue", findAgentID,
		func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Cordon(ctx, id, reason)
			return err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, shown to everyone who sees the agents")
	cli.SetsField(cmd, "reason", "cordonReason")
	return cmd
}

func uncordonCommand(a *cli.App) *cobra.Command {
	return a.OnEach("uncordon AGENT", "Uncordon agents: sessions can start on them", findAgentID,
		func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Uncordon(ctx, id)
			return err
		})
}

func drainCommand(a *cli.App) *cobra.Command {
	in := client.DrainAgentInput{Action: "RESCHEDULE"}
	var after *int
	var wait bool
	cmd := a.OnEach("drain AGENT", "Drain agents: nothing new starts, and at the deadline running sessions are moved or ended", findAgentID,
		func(ctx context.Context, c *client.Client, id string) error {
			if after == nil {
				return cli.Usagef("--deadline is missing: how long sessions may stay, such as 30m; 0s is at once")
			}
			in.ID, in.After = id, after
			g, err := c.Drain(ctx, in)
			if err != nil || !wait {
				return err
			}
			return awaitDrained(ctx, a, c, g)
		})
	cmd.Example = `  berth agent drain node-7 --deadline 30m --then reschedule --reason "disk replacement"
  berth agent drain node-7 --deadline 0s --then terminate --wait`
	cli.OptionalFlag(cmd, &after, "deadline", "the `duration` that sessions can stay, such as 30m; 0s is at once", cli.ParseSeconds)
	cli.SetsField(cmd, "deadline", "after", "deadline")
	cli.EnumFlag(cmd, &in.Action, "then", "what happens to sessions that still run: `reschedule` starts them on another agent, terminate ends them")
	cli.SetsField(cmd, "then", "action")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, shown to the owners of running sessions")
	cmd.Flags().BoolVar(&wait, "wait", false, "return when nothing is left on the agents")
	return cmd
}

// drainPoll is the interval in which the command reads the number of remaining sessions.
const drainPoll = 2 * time.Second

// awaitDrained prints the number of remaining sessions whenever it changes, until there are none.
func awaitDrained(ctx context.Context, a *cli.App, c *client.Client, g *client.Agent) error {
	left := -1
	for {
		if g.DrainDeadline == nil {
			return fmt.Errorf("agent %s is no longer drained", g.Name)
		}
		if g.SessionsLeft != left {
			left = g.SessionsLeft
			a.Note("%s: %d sessions left, at the latest until %s", output.Clean(g.Name), left, a.Moment(g.DrainDeadline))
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(drainPoll):
		}
		now, err := c.Agent(ctx, g.ID)
		if err != nil {
			return err
		}
		g = &now.Agent
	}
}

func undrainCommand(a *cli.App) *cobra.Command {
	return a.OnEach("undrain AGENT", "Cancel the drain of agents: sessions can start on them", findAgentID,
		func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Undrain(ctx, id)
			return err
		})
}

func restartPluginCommand(a *cli.App) *cobra.Command {
	return a.Verb("restart-plugin AGENT PLUGIN", "Restart a plugin on an agent; sessions keep their devices", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			id, err := findAgentID(ctx, c, args[0])
			if err != nil {
				return err
			}
			return c.RestartPlugin(ctx, id, args[1])
		})
}

func removeCommand(a *cli.App) *cobra.Command {
	var role client.Enum
	var expel, yes bool
	cmd := a.Verb("rm NAME...", "Remove lost agents or storage proxies permanently", cli.Args(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkRole(role); err != nil {
				return err
			}
			return a.Each(args, func(name string) error {
				if role == storageRole {
					return c.DeleteStorageProxy(ctx, name)
				}
				g, err := cli.FindAgent(ctx, c, name)
				if err != nil {
					return err
				}
				if expel {
					if err := a.Confirm(ctx, "agent", g.Name, yes); err != nil {
						return err
					}
				}
				_, err = c.DeleteAgent(ctx, g.ID, expel)
				return err
			})
		})
	cmd.Long = `Remove lost agents: their sessions fail, or are rescheduled if their resource
group says so. A removed agent that comes back is accepted again. With --expel
an agent is cut off even while it is alive: its certificates are refused at
once, and the machine needs a new token to join again. A storage proxy is
always cut off, even while it works, and needs a new token to join again; its
volumes stay, so that another proxy can serve them.`
	cmd.Example = "  berth agent rm node-7\n  berth agent rm node-8 --expel\n  berth agent rm proxy-2 --role storage"
	cmd.Flags().BoolVar(&expel, "expel", false, "refuse the agent's certificates from now on, also while it is alive")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before an agent is expelled")
	roleFlag(cmd, &role, "role it had")
	return cmd
}

const storageRole client.Enum = "STORAGE"

// roleFlag adds the flag for the role of a machine in the cluster.
func roleFlag(cmd *cobra.Command, role *client.Enum, what string) {
	*role = "AGENT"
	cli.EnumFlag(cmd, role, "role", what+": `agent` (default) or storage")
}

func checkRole(role client.Enum) error {
	if role != "AGENT" && role != storageRole {
		return cli.Usagef("--role %s: choose agent or storage", role)
	}
	return nil
}
