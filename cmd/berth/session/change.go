package session

import (
	"context"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/resource"
)

func changeCommand(a *cli.App) *cobra.Command {
	var more []string
	var group string
	var anyAgent bool
	cmd := onSession(a, &cobra.Command{
		Use:   "change SESSION",
		Short: "Change the request of a pending session; it keeps its place in the queue",
		Args:  cli.Args(1, 1),
	}, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		in := client.UpdatePendingSessionInput{ID: s.ID}
		if len(more) > 0 {
			asked, err := slotFlags{more: more}.named()
			if err != nil {
				return err
			}
			in.Slots = maps.Clone(s.Slots)
			for name, amount := range asked {
				if in.Slots[name] = resource.Format(name, amount); amount == 0 {
					delete(in.Slots, name)
				}
			}
		}
		if group != "" {
			id, err := cli.FindGroupID(ctx, c, group)
			if err != nil {
				return err
			}
			in.ResourceGroup = id
		}
		if anyAgent {
			strict := false
			in.StrictAgents = &strict
		}
		if in.Slots == nil && group == "" && !anyAgent {
			return cli.Usagef("set at least one of -r, --group and --any-agent")
		}
		changed, err := c.UpdatePendingSession(ctx, in)
		if err != nil {
			return err
		}
		p := a.Printer()
		return p.Print(changed, func() error {
			_, err := fmt.Fprintf(a.Out, "%s requests %s in %s\n", changed.Name, output.Slots(changed.Slots), changed.ResourceGroup.Title())
			return err
		})
	})
	flags := cmd.Flags()
	flags.StringArrayVarP(&more, "resource", "r", nil, "a slot, as slot=amount; 0 requests none (repeatable)")
	flags.StringVar(&group, "group", "", "resource group, by name or id")
	flags.BoolVar(&anyAgent, "any-agent", false, "run also on other agents than the requested ones")
	cli.SetsField(cmd, "resource", "slots")
	cli.SetsField(cmd, "group", "resourceGroup")
	cli.SetsField(cmd, "any-agent", "strictAgents")
	return cmd
}
