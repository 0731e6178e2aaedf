package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) agentCommand() *cobra.Command {
	return group("agent", "Show, cordon, drain and move worker machines", a.agentList(), a.agentShow(), a.agentDevices(),
		a.agentCordon(), a.agentUncordon(), a.agentDrain(), a.agentUndrain(),
		a.agentMove(), a.agentRestartPlugin(), a.agentRemove(), a.agentJoin())
}

func (a *app) agentList() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List agents and their allocated resources",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Agents(cmd.Context(), "")
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table {
				t := output.NewTable("NAME", "STATUS", "GROUP", "SESSIONS", "HELD", "VERSION", "SEEN")
				for _, g := range list {
					t.Row(g.Name, a.agentStatus(g), g.ResourceGroup.Name, strconv.Itoa(g.SessionsLeft), output.Used(g.Occupied, g.Capacity),
						g.Version, output.Age(a.now(), g.LastSeenAt)+" ago")
				}
				return t
			})
		},
	}
}

func (a *app) agentStatus(g client.Agent) output.Cell {
	c := output.Cell{Text: g.Status, Color: output.Green}
	if g.Status != "alive" {
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
	case g.DrainDeadline != nil && g.DrainDeadline.After(a.now()):
		c.Text += ", draining for " + output.Duration(g.DrainDeadline.Sub(a.now()))
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

func (a *app) agentShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show AGENT",
		Short: "Show an agent, its devices and their sessions",
		Args:  count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			found, err := findAgent(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			g, err := c.Agent(cmd.Context(), found.ID)
			if err != nil {
				return err
			}
			p := a.print()
			return p.Print(g, func() error { return a.describeAgent(p, g) })
		},
	}
}

func (a *app) describeAgent(p output.Printer, g *client.AgentDetail) error {
	s := a.sheet()
	s.fact("Name", g.Name)
	s.fact("ID", g.ID)
	s.fact("Status", a.agentStatus(g.Agent).Text)
	if g.DrainDeadline != nil {
		s.fact("Drain", fmt.Sprintf("%s %s", *g.DrainAction, a.moment(g.DrainDeadline)))
	}
	if g.LostAt != nil {
		s.fact("Lost", a.moment(g.LostAt))
	}
	s.fact("Sessions", strconv.Itoa(g.SessionsLeft))
	s.fact("Group", g.ResourceGroup.Name)
	s.fact("Version", g.Version)
	machine := g.Architecture
	if g.Address != "" {
		machine += " at " + g.Address
	}
	s.fact("Machine", machine)
	s.fact("Held", output.Used(g.Occupied, g.Capacity))
	s.fact("Seen", a.moment(&g.LastSeenAt))
	for _, k := range g.Conditions {
		text := fmt.Sprintf("%s: no, %s", conditionName(k), k.Reason)
		if k.Status {
			text = fmt.Sprintf("%s: YES, %s, %s", conditionName(k), k.Reason, a.moment(&k.Since))
		}
		s.fact("Condition", text)
	}
	for _, probe := range g.Probes {
		if !probe.OK {
			s.fact("Cannot", probe.Name+": "+probe.Detail)
		} else if probe.Name == "session-disk" {
			s.fact("Disks", "session disks are "+probe.Detail)
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
		s.fact("Plugin", text)
		for _, check := range plugin.Checks {
			text := fmt.Sprintf("%s %s: %s", plugin.Name, check.Name, check.Level)
			if check.Text != "" {
				text += ": " + check.Text
			}
			s.fact("Check", text)
		}
	}
	fmt.Fprintln(a.out)
	t := output.NewTable("DEVICE", "MODEL", "HEALTH", "HELD", "HOLDERS")
	for _, d := range g.Devices {
		t.Row(d.DeviceID, d.Model, deviceHealth(d), output.Used(d.Occupied, d.Capacity), holders(d))
	}
	return p.Write(t)
}

func deviceHealth(d client.Device) output.Cell {
	c := output.Cell{Text: d.Health, Color: output.Green}
	if d.Health != "healthy" {
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

func (a *app) agentMove() *cobra.Command {
	var to string
	var force bool
	cmd := a.verb("move AGENT...", "Move agents to another resource group", count(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if to == "" {
				return usagef("--group is missing: the resource group to put the agents into")
			}
			id, err := findGroupID(ctx, c, to)
			if err != nil {
				return err
			}
			return a.each(args, func(ref string) error {
				g, err := findAgent(ctx, c, ref)
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

func (a *app) agentJoin() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Print the command that lets one more machine join",
		Args:  count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
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
			return a.print().Print(t, func() error {
				_, err := fmt.Fprintln(a.out, output.Clean(t.Command))
				return err
			})
		},
	}
	roleFlag(cmd, &role, "role of the machine")
	return cmd
}
