package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func recoveryCommand(a *cli.App) *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "recovery on|off",
		Short: "Turn the cluster's recovery mode on or off",
		Long: `In recovery mode no session starts, and nothing is ended or removed unless a user
requests it. A leader turns the mode on when the database is older than the
running containers, as after a restore from a backup. off lists what will end,
and asks.`,
		Example:   "  berth admin cluster recovery on --reason 'restore of the database'\n  berth admin cluster recovery off",
		Args:      cobra.MatchAll(cli.Args(1, 1), onOrOff),
		ValidArgs: []string{"on", "off"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			on := args[0] == "on"
			if !on {
				if err := leaving(cmd.Context(), a, c, yes); err != nil {
					return err
				}
			}
			state, err := c.SetRecovery(cmd.Context(), on, reason)
			if err != nil {
				return err
			}
			return a.Printer().Print(state, func() error {
				_, err := fmt.Fprintf(a.Out, "Recovery mode is %s.\n", args[0])
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for other administrators")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before the mode is turned off")
	return cmd
}

func onOrOff(_ *cobra.Command, args []string) error {
	if args[0] != "on" && args[0] != "off" {
		return cli.Usagef("%q: say on or off", args[0])
	}
	return nil
}

// leaving shows how the differences between agents and database will be resolved when the mode
// ends, and asks for confirmation.
func leaving(ctx context.Context, a *cli.App, c *client.Client, yes bool) error {
	found, err := c.Occupancy(ctx)
	if err != nil {
		return err
	}
	if len(found.Silent) > 0 {
		a.Note("These agents did not answer: %s", strings.Join(found.Silent, ", "))
	}
	t := output.NewTable("KIND", "AGENT", "SESSION", "OWNER", "PROJECT", "THEN").Spare("THEN")
	for _, d := range found.Drift {
		session := ""
		if d.Session != nil {
			session = *d.Session
		}
		t.Row(d.Kind, d.Agent, session, d.Owner, d.Project, d.Next)
	}
	if len(found.Drift) > 0 {
		if err := a.Printer().Write(t); err != nil {
			return err
		}
	}
	a.Note("Waiting sessions start, and lifetimes, idle checks, drains and retention apply again.")
	return a.ConfirmAction(ctx, "Turn recovery mode off?", "turn recovery mode off", "recovery mode stays on", yes)
}
