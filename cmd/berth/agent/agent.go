// Package agent has the commands about agents and their devices.
package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth agent".
func Command(a *cli.App) *cobra.Command {
	return cli.Group("agent", "Show, cordon, drain and move worker machines", listCommand(a), showCommand(a), devicesCommand(a), statsCommand(a),
		cordonCommand(a), uncordonCommand(a), drainCommand(a), undrainCommand(a),
		moveCommand(a), restartPluginCommand(a), removeCommand(a), joinCommand(a))
}

func listCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List agents and their allocated resources",
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.Agents(cmd.Context(), "")
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table {
				t := output.NewTable("NAME", "STATUS", "GROUP", "SESSIONS", "HELD", "VERSION", "SEEN")
				for _, g := range list {
					t.Row(g.Name, agentStatus(a, g), g.ResourceGroup.Name, strconv.Itoa(g.SessionsLeft), output.Used(g.Occupied, g.Capacity),
						g.Version, output.Age(a.Now(), g.LastSeenAt)+" ago")
				}
				return t
			})
		},
	}
}

func agentStatus(a *cli.App, g client.Agent) output.Cell {
	c := output.Cell{Text: g.Status.String(), Color: output.Green}
	if g.Status != "ALIVE" {
		c.Color = output.Red
	}
	for _, k := range g.Conditions {
		if k.Status {
			c.Text += ", " + conditionName(k)
			c.Color = output.Red
		}
	}
	if g.Schedulable {
		return c
	}
	c.Color = output.Yellow
	switch {
	case g.Drained:
		c.Text += ", drained"
	case g.DrainDeadline != nil && g.DrainDeadline.After(a.Now()):
		c.Text += ", draining for " + output.Duration(g.DrainDeadline.Sub(a.Now()))
	case g.DrainDeadline != nil:
		c.Text += ", draining"
	default:
		c.Text += ", cordoned"
	}
	if g.CordonReason != "" {
		c.Text += ": " + g.CordonReason
	}
	return c
}

func conditionName(k client.Condition) string { return strings.ReplaceAll(k.Type, "_", " ") }

func showCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show AGENT",
		Short: "Show an agent, its devices and their sessions",
		Args:  cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			found, err := cli.FindAgent(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			g, err := c.Agent(cmd.Context(), found.ID)
			if err != nil {
				return err
			}
			p := a.Printer()
			return p.Print(g, func() error { return describeAgent(a, p, g) })
		},
	}
}

func describeAgent(a *cli.App, p output.Printer, g *client.AgentDetail) error {
	s := a.Sheet()
	s.Fact("Name", g.Name)
	s.Fact("ID", g.ID)
	s.Fact("Status", agentStatus(a, g.Agent).Text)
	if g.DrainDeadline != nil {
		s.Fact("Drain", fmt.Sprintf("%s %s", *g.DrainAction, a.Moment(g.DrainDeadline)))
	}
	if g.LostAt != nil {
		s.Fact("Lost", a.Moment(g.LostAt))
	}
	s.Fact("Sessions", strconv.Itoa(g.SessionsLeft))
	s.Fact("Group", g.ResourceGroup.Name)
	s.Fact("Version", g.Version)
	machine := g.Architecture
	if g.Address != "" {
		machine += " at " + g.Address
	}
	s.Fact("Machine", machine)
	s.Fact("Zone", g.Zone)
	s.Fact("Held", output.Used(g.Occupied, g.Capacity))
	s.Fact("Seen", a.Moment(&g.LastSeenAt))
	for _, k := range g.Conditions {
		text := fmt.Sprintf("%s: no, %s", conditionName(k), k.Reason)
		if k.Status {
			text = fmt.Sprintf("%s: YES, %s, %s", conditionName(k), k.Reason, a.Moment(&k.Since))
		}
		s.Fact("Condition", text)
	}
	for _, probe := range g.Probes {
		if !probe.OK {
			s.Fact("Cannot", probe.Name+": "+probe.Detail)
		} else if probe.Name == "session-disk" {
			s.Fact("Disks", "session disks are "+probe.Detail)
		}
	}
	for _, plugin := range g.Plugins {
		text := fmt.Sprintf("%s %s: %s", plugin.Name, plugin.Version, plugin.State)
		if plugin.Restarts > 0 {
			text += fmt.Sprintf(", started again %d times", plugin.Restarts)
		}
		if plugin.Message != "" {
			text += ": " + plugin.Message
		}
		s.Fact("Plugin", text)
		for _, check := range plugin.Checks {
			text := fmt.Sprintf("%s %s: %s", plugin.Name, check.Name, check.Level)
			if check.Text != "" {
				text += ": " + check.Text
			}
			s.Fact("Check", text)
		}
	}
	fmt.Fprintln(a.Out)
	t := output.NewTable("DEVICE", "MODEL", "HEALTH", "HELD", "HOLDERS")
	for _, d := range g.Devices {
		t.Row(d.DeviceID, d.Model, deviceHealth(d), output.Used(d.Occupied, d.Capacity), holders(d))
	}
	return p.Write(t)
}

func deviceHealth(d client.Device) output.Cell {
	c := output.Cell{Text: d.Health.String(), Color: output.Green}
	if d.Health != "HEALTHY" {
		c.Color = output.Yellow
	}
	if !d.Allocatable {
		c.Color = output.Red
		c.Text += ", not allocatable"
		if len(d.RejectReasons) > 0 {
			c.Text += ": " + strings.Join(d.RejectReasons, ", ")
		}
	}
	return c
}

// holders lists sessions once, however many slots of the device they hold.
func holders(d client.Device) string {
	var parts []string
	seen := map[string]bool{}
	for _, h := range d.Holders {
		name := "(another user)"
		if h.Session != nil {
			name = h.Session.Name
		}
		if h.Session != nil && seen[name] {
			continue
		}
		seen[name] = true
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

func moveCommand(a *cli.App) *cobra.Command {
	var to string
	var force bool
	cmd := a.Verb("move AGENT...", "Move agents to another resource group", cli.Args(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if to == "" {
				return cli.Usagef("--group is missing: the resource group to put the agents into")
			}
			id, err := cli.FindGroupID(ctx, c, to)
			if err != nil {
				return err
			}
			return a.Each(args, func(ref string) error {
				g, err := cli.FindAgent(ctx, c, ref)
				if err != nil {
					return err
				}
				_, err = c.MoveAgent(ctx, g.ID, id, force)
				return err
			})
		})
	cmd.Flags().StringVar(&to, "group", "", "the resource group, by name or id")
	cmd.Flags().BoolVar(&force, "force", false, "move an agent on which sessions run; they stay in their resource group")
	cmd.Long = `Move agents to another resource group. This is refused for an agent with running
sessions: drain it first, or use --force. With --force the sessions continue and
stay in their resource group.`
	return cmd
}

func joinCommand(a *cli.App) *cobra.Command {
	var role client.Enum
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Print the command that lets one more machine join",
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if err := checkRole(role); err != nil {
				return err
			}
			t, err := c.CreateJoinToken(cmd.Context(), role)
			if err != nil {
				return err
			}
			return a.Printer().Print(t, func() error {
				_, err := fmt.Fprintln(a.Out, output.Clean(t.Command))
				return err
			})
		},
	}
	roleFlag(cmd, &role, "role of the machine")
	return cmd
}
