package policy

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// GroupCommand returns the command "berth admin group".
func GroupCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("group", "Manage resource groups: partitions of machines, and who may use them",
		groupList(a), groupShow(a), groupCreate(a), groupUpdate(a),
		groupActive(a, "activate", "Activate groups: sessions can start in them", true),
		groupActive(a, "deactivate", "Deactivate groups: nothing new starts in them, and running sessions continue", false),
		groupDelete(a), groupGrant(a), groupRevoke(a), groupAccess(a)), "groups")
}

func groupList(a *cli.App) *cobra.Command {
	return a.List("List resource groups", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Groups(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return groupTable(list...) })
	})
}

func groupTable(list ...client.Group) *output.Table {
	t := output.NewTable("NAME", "STATE", "OPEN TO", "SESSIONS", "AGENTS", "DESCRIPTION").Spare("DESCRIPTION")
	for _, g := range list {
		t.Row(g.Name, cli.ActiveCell(g.Active), openTo(g), strings.Join(cli.EnumTexts(g.SessionTypes), ", "), strconv.Itoa(g.Agents.TotalCount), g.Description)
	}
	return t
}

func openTo(g client.Group) string {
	if g.Public {
		return "everybody"
	}
	var all []string
	for _, grant := range g.Grants {
		all = append(all, cli.HolderText(grant.Domain, grant.Project, grant.User, "a keypair"))
	}
	if len(all) == 0 {
		return "superadmins"
	}
	return strings.Join(all, ", ")
}

func groupShow(a *cli.App) *cobra.Command {
	return a.Verb("show GROUP", "Show a resource group and who may use it", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		g, err := cli.FindGroup(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Printer().Print(g, func() error {
			s := a.Sheet()
			s.Fact("Name", g.Name)
			s.Fact("ID", g.ID)
			s.Fact("State", cli.ActiveCell(g.Active).Text)
			s.Fact("Description", g.Description)
			s.Fact("Sessions", strings.Join(cli.EnumTexts(g.SessionTypes), ", "))
			s.Fact("Networks", strings.Join(g.AllowedNetworks, ", "))
			s.Fact("Placement", g.Strategy.String())
			s.Fact("Order", g.Order.String())
			s.Fact("Hold after", holdText(g.HoldAfter))
			s.Fact("Split", g.Split.String())
			s.Fact("Topology", g.Topology.String())
			s.Fact("Half-life", output.Duration(time.Duration(g.HalfLife)*time.Second))
			s.Fact("Lookback", output.Duration(time.Duration(g.Lookback)*time.Second))
			s.Fact("Attempts", strconv.Itoa(g.MaxAttempts))
			s.Fact("Waiting", waitingText(g.PendingTimeout))
			s.Fact("Preemption", preemptionText(g))
			s.Fact("Lost agents", lostText(g.LostPolicy.String(), g.LostAfter))
			s.Fact("Agents", strconv.Itoa(g.Agents.TotalCount))
			if g.Public {
				s.Fact("Open to", "everybody")
			}
			for _, grant := range g.Grants {
				s.Fact("Granted to", cli.HolderText(grant.Domain, grant.Project, grant.User, "a keypair"))
			}
			s.Fact("Created", a.Moment(&g.CreatedAt))
			return nil
		})
	})
}

func groupCreate(a *cli.App) *cobra.Command {
	var options client.UpdateResourceGroupInput
	var description string
	var public bool
	cmd := a.Verb("create NAME", "Create a resource group", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in := cli.Convert[client.CreateResourceGroupInput](options)
		in.Name, in.Description, in.Public = args[0], description, public
		g, err := c.CreateGroup(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(g, func() *output.Table { return groupTable(*g) })
	})
	cmd.Flags().StringVar(&description, "description", "", "its purpose")
	cmd.Flags().BoolVar(&public, "public", false, "open to all users, without grants")
	groupOptions(cmd, &options)
	cli.ListFlag(cmd, &options.SessionTypes, "session-types", "`types` of sessions that may start in it, with commas between, such as interactive,batch (default: all)", cli.Enums)
	return cmd
}

func groupUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateResourceGroupInput
	cmd := a.Verb("update GROUP", "Change a resource group; running sessions continue", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		id, err := cli.FindGroupID(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = id
		g, err := c.UpdateGroup(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(g, func() *output.Table { return groupTable(*g) })
	})
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.OptionalText(cmd, &in.Description, "description", "its purpose, a `text`")
	cli.OptionalBool(cmd, &in.Public, "public", "open to all users (=false: only with a grant)")
	groupOptions(cmd, &in)
	cli.ListFlag(cmd, &in.SessionTypes, "session-types", "`types` of sessions that may start in it, with commas between, such as interactive,batch", cli.Enums)
	return cmd
}

// groupOptions adds the flags for the scheduler options of a group.
func groupOptions(cmd *cobra.Command, o *client.UpdateResourceGroupInput) {
	cli.EnumFlag(cmd, &o.Strategy, "strategy", "which agent is taken among those with room: `pack`, concentrated, dispersed or roundrobin")
	cli.EnumFlag(cmd, &o.Order, "order", "order of pending sessions of the same priority: `fifo`, lifo, drf or fair_share")
	cli.OptionalFlag(cmd, &o.HoldAfter, "hold-after", "the `duration` after which agents are reserved for the first session of the queue, such as 10m, or never", func(text string) (int, error) {
		if text == "never" {
			return -1, nil
		}
		return cli.ParseSeconds(text)
	})
	cli.SetsField(cmd, "hold-after", "holdAfter")
	cli.EnumFlag(cmd, &o.Split, "split", "how an amount is given that is more than one device has: `fill`, evenly or none")
	cli.EnumFlag(cmd, &o.Topology, "topology", "how near to each other the devices of a container are: `prefer` near ones, or never farther than one NUMA node, one PCIe root, or linked")
	cli.OptionalFlag(cmd, &o.HalfLife, "half-life", "the `duration` after which usage counts half for fair share, such as 7d", cli.ParseSeconds)
	cli.SetsField(cmd, "half-life", "halfLife")
	cli.OptionalFlag(cmd, &o.Lookback, "lookback", "the `duration` after which fair share forgets usage, such as 28d", cli.ParseSeconds)
	cli.EnumFlag(cmd, &o.LostPolicy, "lost-policy", "what happens to sessions on a lost agent: `wait`, fail or reschedule")
	cli.SetsField(cmd, "lost-policy", "lostPolicy")
	cli.OptionalFlag(cmd, &o.LostAfter, "lost-after", "the `duration` from the loss of an agent to that, such as 5m", cli.ParseSeconds)
	cli.SetsField(cmd, "lost-after", "lostAfter")
	cli.OptionalFlag(cmd, &o.MaxAttempts, "max-attempts", "how `often` in a row a session may fail to start before it is given up", strconv.Atoi)
	cli.SetsField(cmd, "max-attempts", "maxAttempts")
	cli.OptionalFlag(cmd, &o.PendingTimeout, "pending-timeout", "the maximum `duration` that a session may stay pending once it is eligible, or never", func(text string) (int, error) {
		if text == "never" {
			return 0, nil
		}
		return cli.ParseSeconds(text)
	})
	cli.SetsField(cmd, "pending-timeout", "pendingTimeout")
	cli.EnumFlag(cmd, &o.Preemption, "preemption", "what happens to preemptible sessions when a session of higher priority has no room: `off`, terminate or reschedule")
	cli.EnumFlag(cmd, &o.PreemptionScope, "preemption-scope", "whose sessions make room for a session: those of the same `user`, project, domain or group")
	cli.SetsField(cmd, "preemption-scope", "preemptionScope")
	cli.OptionalFlag(cmd, &o.PreemptionAfter, "preemption-after", "the `duration` that a session runs before it may be preempted, such as 5m", cli.ParseSeconds)
	cli.SetsField(cmd, "preemption-after", "preemptionAfter")
	cli.ListFlag(cmd, &o.AllowedNetworks, "allow-networks", "private `networks` that containers reach, with commas between, such as 10.1.0.0/16,10.1.2.3:443, in addition to those that their agents allow; \"\" for none",
		func(text string) ([]string, error) { return append([]string{}, cli.Words(text)...), nil })
	cli.SetsField(cmd, "allow-networks", "allowedNetworks")
}

func waitingText(most int) string {
	if most == 0 {
		return "forever"
	}
	return "at most " + cli.Seconds(most)
}

// preemptionText describes which sessions can be preempted.
func preemptionText(g *client.Group) string {
	whose := "of the same " + g.PreemptionScope.String()
	if g.PreemptionScope == "GROUP" {
		whose = "of anybody"
	}
	switch g.Preemption {
	case "TERMINATE":
		return "sessions " + whose + " end after " + cli.Seconds(g.PreemptionAfter)
	case "RESCHEDULE":
		return "sessions " + whose + " wait again after " + cli.Seconds(g.PreemptionAfter)
	}
	return "off"
}

// lostText describes the policy for sessions on lost agents.
func lostText(policy string, after int) string {
	switch policy {
	case "fail":
		return "sessions fail after " + cli.Seconds(after)
	case "reschedule":
		return "sessions are rescheduled after " + cli.Seconds(after)
	}
	return "sessions wait"
}

func holdText(seconds int) string {
	if seconds < 0 {
		return "never"
	}
	return (time.Duration(seconds) * time.Second).String()
}

func groupActive(a *cli.App, name, short string, active bool) *cobra.Command {
	return a.OnEach(name+" GROUP", short, cli.FindGroupID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateGroup(ctx, client.UpdateResourceGroupInput{ID: id, Active: &active})
		return err
	})
}

func groupDelete(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete GROUP", "Remove resource groups that have neither agents nor sessions", cli.FindGroupID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteGroup(ctx, id) }), "rm")
}

func groupGrant(a *cli.App) *cobra.Command {
	return onGroupHolder(a, "grant GROUP", "Let a domain, project, user or keypair use a group", (*client.Client).GrantGroup)
}

func groupRevoke(a *cli.App) *cobra.Command {
	return onGroupHolder(a, "revoke GROUP", "Revoke the use of a group from a domain, project, user or keypair",
		func(c *client.Client, ctx context.Context, in client.GrantResourceGroupInput) (*client.Group, error) {
			return c.RevokeGroup(ctx, client.RevokeResourceGroupInput(in))
		})
}

func onGroupHolder(a *cli.App, use, short string, do func(*client.Client, context.Context, client.GrantResourceGroupInput) (*client.Group, error)) *cobra.Command {
	var f cli.HolderFlags
	cmd := a.Verb(use, short, cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		h, err := f.Holder(ctx, c)
		if err != nil {
			return err
		}
		id, err := cli.FindGroupID(ctx, c, args[0])
		if err != nil {
			return err
		}
		g, err := do(c, ctx, client.GrantResourceGroupInput{
			ResourceGroup: id, Domain: h.Domain, Project: h.Project, User: h.User, Keypair: h.Keypair,
		})
		if err != nil {
			return err
		}
		return a.Table(g, func() *output.Table { return groupTable(*g) })
	})
	f.Add(cmd, true)
	return cmd
}

func groupAccess(a *cli.App) *cobra.Command {
	var user, project string
	cmd := a.Verb("access [GROUP]", "Show who may use a group, or which groups you, a user or a project may use", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if len(args)+cli.CountSet(user, project) > 1 {
				return cli.Usagef("name a group, --user or --project, only one of them")
			}
			on, err := cli.FindGroupID(ctx, c, cli.First(args))
			if err != nil {
				return err
			}
			owner, err := cli.FindUserID(ctx, c, user)
			if err != nil {
				return err
			}
			in, err := cli.FindProjectID(ctx, c, project)
			if err != nil {
				return err
			}
			list, err := c.GroupAccess(ctx, on, owner, in)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table { return accessTable(list) })
		})
	cmd.Example = `  berth admin group access gpu                       # who may use it
  berth admin group access --user kim@example.org    # which ones they can use`
	cmd.Flags().StringVar(&user, "user", "", "which groups this user may use")
	cmd.Flags().StringVar(&project, "project", "", "which groups this project may use")
	return cmd
}

func accessTable(list []client.GroupAccess) *output.Table {
	t := output.NewTable("GROUP", "MAY BE USED BY", "BECAUSE OF")
	for _, one := range list {
		t.Row(one.ResourceGroup.Title(), cli.HolderText(nil, one.Project, one.User, "you"), reasons(one.Via))
	}
	return t
}

// reasons lists the grants through which a user or project can use a group.
func reasons(via []client.Enum) string {
	var all []string
	for _, v := range via {
		all = append(all, v.String())
	}
	return strings.Join(all, ", ")
}
