package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) groupCommand() *cobra.Command {
	return alias(group("group", "Manage resource groups: partitions of machines, and who may use them",
		a.groupList(), a.groupShow(), a.groupCreate(), a.groupUpdate(),
		a.groupActive("activate", "Activate groups: sessions can start in them", true),
		a.groupActive("deactivate", "Deactivate groups: nothing new starts in them, and running sessions continue", false),
		a.groupDelete(), a.groupGrant(), a.groupRevoke(), a.groupAccess()), "groups")
}

func (a *app) groupList() *cobra.Command {
	return a.list("List resource groups", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Groups(ctx, "")
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return groupTable(list...) })
	})
}

func groupTable(list ...client.Group) *output.Table {
	t := output.NewTable("NAME", "STATE", "OPEN TO", "SESSIONS", "AGENTS", "DESCRIPTION").Spare("DESCRIPTION")
	for _, g := range list {
		t.Row(g.Name, activity(g.Active), openTo(g), strings.Join(g.SessionTypes, ", "), strconv.Itoa(g.Agents.TotalCount), g.Description)
	}
	return t
}

func openTo(g client.Group) string {
	if g.Public {
		return "everybody"
	}
	var all []string
	for _, grant := range g.Grants {
		all = append(all, holderText(grant.Domain, grant.Project, grant.User, "a keypair"))
	}
	if len(all) == 0 {
		return "superadmins"
	}
	return strings.Join(all, ", ")
}

func (a *app) groupShow() *cobra.Command {
	return a.verb("show GROUP", "Show a resource group and who may use it", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		g, err := findGroup(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.print().Print(g, func() error {
			s := a.sheet()
			s.fact("Name", g.Name)
			s.fact("ID", g.ID)
			s.fact("State", activity(g.Active).Text)
			s.fact("Description", g.Description)
			s.fact("Sessions", strings.Join(g.SessionTypes, ", "))
			s.fact("Networks", strings.Join(g.AllowedNetworks, ", "))
			s.fact("Placement", g.Strategy)
			s.fact("Order", g.Order)
			s.fact("Hold after", holdText(g.HoldAfter))
			s.fact("Split", g.Split)
			s.fact("Topology", g.Topology)
			s.fact("Half-life", output.Duration(time.Duration(g.HalfLife)*time.Second))
			s.fact("Lookback", output.Duration(time.Duration(g.Lookback)*time.Second))
			s.fact("Attempts", strconv.Itoa(g.MaxAttempts))
			s.fact("Waiting", waitingText(g.PendingTimeout))
			s.fact("Preemption", preemptionText(g))
			s.fact("Lost agents", lostText(g.LostPolicy, g.LostAfter))
			s.fact("Agents", strconv.Itoa(g.Agents.TotalCount))
			if g.Public {
				s.fact("Open to", "everybody")
			}
			for _, grant := range g.Grants {
				s.fact("Granted to", holderText(grant.Domain, grant.Project, grant.User, "a keypair"))
			}
			s.fact("Created", a.moment(&g.CreatedAt))
			return nil
		})
	})
}

func (a *app) groupCreate() *cobra.Command {
	var options client.UpdateResourceGroupInput
	var description string
	var public bool
	cmd := a.verb("create NAME", "Create a resource group", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in := as[client.CreateResourceGroupInput](options)
		in.Name, in.Description, in.Public = args[0], description, public
		g, err := c.CreateGroup(ctx, in)
		if err != nil {
			return err
		}
		return a.table(g, func() *output.Table { return groupTable(*g) })
	})
	cmd.Flags().StringVar(&description, "description", "", "its purpose")
	cmd.Flags().BoolVar(&public, "public", false, "open to all users, without grants")
	groupOptions(cmd, &options)
	givenWords(cmd, &options.SessionTypes, "session-types", "`types` of sessions that may start in it, with commas between, such as interactive,batch (default: all)")
	return cmd
}

func (a *app) groupUpdate() *cobra.Command {
	var in client.UpdateResourceGroupInput
	cmd := a.verb("update GROUP", "Change a resource group; running sessions continue", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := changes(in); err != nil {
			return err
		}
		id, err := findGroupID(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = id
		g, err := c.UpdateGroup(ctx, in)
		if err != nil {
			return err
		}
		return a.table(g, func() *output.Table { return groupTable(*g) })
	})
	givenText(cmd, &in.Name, "name", "another `name`")
	givenText(cmd, &in.Description, "description", "its purpose, a `text`")
	givenBool(cmd, &in.Public, "public", "open to all users (=false: only with a grant)")
	groupOptions(cmd, &in)
	givenWords(cmd, &in.SessionTypes, "session-types", "`types` of sessions that may start in it, with commas between, such as interactive,batch")
	return cmd
}

// groupOptions are the flags of the scheduler's options of a group.
func groupOptions(cmd *cobra.Command, o *client.UpdateResourceGroupInput) {
	cmd.Flags().StringVar(&o.Strategy, "strategy", "", "which agent is taken among those with room: `pack`, concentrated, dispersed or roundrobin")
	cmd.Flags().StringVar(&o.Order, "order", "", "order of pending sessions of the same priority: `fifo`, lifo, drf or fair_share")
	given(cmd, &o.HoldAfter, "hold-after", "the `duration` after which agents are reserved for the first session of the queue, such as 10m, or never", func(text string) (int, error) {
		if text == "never" {
			return -1, nil
		}
		return parseSeconds(text)
	})
	sets(cmd, "hold-after", "holdAfter")
	cmd.Flags().StringVar(&o.Split, "split", "", "how an amount is given that is more than one device has: `fill`, evenly or none")
	cmd.Flags().StringVar(&o.Topology, "topology", "", "how near to each other the devices of a container are: `prefer` near ones, or never farther than one NUMA node, one PCIe root, or linked")
	given(cmd, &o.HalfLife, "half-life", "the `while` after which usage counts half for fair share, such as 7d", parseSeconds)
	sets(cmd, "half-life", "halfLife")
	given(cmd, &o.Lookback, "lookback", "the `while` after which fair share forgets usage, such as 28d", parseSeconds)
	cmd.Flags().StringVar(&o.LostPolicy, "lost-policy", "", "what happens to sessions on a lost agent: `wait`, fail or reschedule")
	sets(cmd, "lost-policy", "lostPolicy")
	given(cmd, &o.LostAfter, "lost-after", "the `while` from the loss of an agent to that, such as 5m", parseSeconds)
	sets(cmd, "lost-after", "lostAfter")
	given(cmd, &o.MaxAttempts, "max-attempts", "how `often` in a row a session may fail to start before it is given up", strconv.Atoi)
	sets(cmd, "max-attempts", "maxAttempts")
	given(cmd, &o.PendingTimeout, "pending-timeout", "the maximum `duration` that a session may stay pending once it is eligible, or never", func(text string) (int, error) {
		if text == "never" {
			return 0, nil
		}
		return parseSeconds(text)
	})
	sets(cmd, "pending-timeout", "pendingTimeout")
	cmd.Flags().StringVar(&o.Preemption, "preemption", "", "what happens to preemptible sessions when a session of higher priority has no room: `off`, terminate or reschedule")
	cmd.Flags().StringVar(&o.PreemptionScope, "preemption-scope", "", "whose sessions make room for a session: those of the same `user`, project, domain or group")
	sets(cmd, "preemption-scope", "preemptionScope")
	given(cmd, &o.PreemptionAfter, "preemption-after", "the `while` that a session runs before it may be preempted, such as 5m", parseSeconds)
	sets(cmd, "preemption-after", "preemptionAfter")
	givenList(cmd, &o.AllowedNetworks, "allow-networks", "private `networks` that containers reach, with commas between, such as 10.1.0.0/16,10.1.2.3:443, in addition to those that their agents allow; \"\" for none",
		func(text string) ([]string, error) { return append([]string{}, words(text)...), nil })
	sets(cmd, "allow-networks", "allowedNetworks")
}

func waitingText(most int) string {
	if most == 0 {
		return "for ever"
	}
	return "at most " + seconds(most)
}

// preemptionText says which sessions make room for others.
func preemptionText(g *client.Group) string {
	whose := "of the same " + g.PreemptionScope
	if g.PreemptionScope == "group" {
		whose = "of anybody"
	}
	switch g.Preemption {
	case "terminate":
		return "sessions " + whose + " end after " + seconds(g.PreemptionAfter)
	case "reschedule":
		return "sessions " + whose + " wait again after " + seconds(g.PreemptionAfter)
	}
	return "off"
}

// lostText says what becomes of sessions on lost agents.
func lostText(policy string, after int) string {
	switch policy {
	case "fail":
		return "sessions fail after " + seconds(after)
	case "reschedule":
		return "sessions are rescheduled after " + seconds(after)
	}
	return "sessions wait"
}

func holdText(seconds int) string {
	if seconds < 0 {
		return "never"
	}
	return (time.Duration(seconds) * time.Second).String()
}

func (a *app) groupActive(name, short string, active bool) *cobra.Command {
	return a.onEach(name+" GROUP", short, findGroupID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateGroup(ctx, client.UpdateResourceGroupInput{ID: id, Active: &active})
		return err
	})
}

func (a *app) groupDelete() *cobra.Command {
	return alias(a.onEach("delete GROUP", "Remove resource groups that have neither agents nor sessions", findGroupID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteGroup(ctx, id) }), "rm")
}

func (a *app) groupGrant() *cobra.Command {
	return a.onGroupHolder("grant GROUP", "Let a domain, project, user or keypair use a group", (*client.Client).GrantGroup)
}

func (a *app) groupRevoke() *cobra.Command {
	return a.onGroupHolder("revoke GROUP", "Revoke the use of a group from a domain, project, user or keypair",
		func(c *client.Client, ctx context.Context, in client.GrantResourceGroupInput) (*client.Group, error) {
			return c.RevokeGroup(ctx, client.RevokeResourceGroupInput(in))
		})
}

func (a *app) onGroupHolder(use, short string, do func(*client.Client, context.Context, client.GrantResourceGroupInput) (*client.Group, error)) *cobra.Command {
	var f holderFlags
	cmd := a.verb(use, short, count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		h, err := f.holder(ctx, c)
		if err != nil {
			return err
		}
		id, err := findGroupID(ctx, c, args[0])
		if err != nil {
			return err
		}
		g, err := do(c, ctx, client.GrantResourceGroupInput{
			ResourceGroup: id, Domain: h.domain, Project: h.project, User: h.user, Keypair: h.keypair,
		})
		if err != nil {
			return err
		}
		return a.table(g, func() *output.Table { return groupTable(*g) })
	})
	f.add(cmd, true)
	return cmd
}

func (a *app) groupAccess() *cobra.Command {
	var user, project string
	cmd := a.verb("access [GROUP]", "Show who may use a group, or which groups you, a user or a project may use", count(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if len(args)+howMany(user, project) > 1 {
				return usagef("name a group, --user or --project, only one of them")
			}
			on, err := findGroupID(ctx, c, first(args))
			if err != nil {
				return err
			}
			owner, err := findUserID(ctx, c, user)
			if err != nil {
				return err
			}
			in, err := findProjectID(ctx, c, project)
			if err != nil {
				return err
			}
			list, err := c.GroupAccess(ctx, on, owner, in)
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return accessTable(list) })
		})
	cmd.Example = `  berth admin group access gpu                       # who may use it
  berth admin group access --user kim@example.org    # which ones he may use`
	cmd.Flags().StringVar(&user, "user", "", "which groups this user may use")
	cmd.Flags().StringVar(&project, "project", "", "which groups this project may use")
	return cmd
}

func accessTable(list []client.GroupAccess) *output.Table {
	t := output.NewTable("GROUP", "MAY BE USED BY", "BECAUSE OF")
	for _, one := range list {
		t.Row(one.ResourceGroup.Title(), holderText(nil, one.Project, one.User, "you"), strings.Join(one.Via, ", "))
	}
	return t
}
