package main

import (
	"context"
	"strconv"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) sessionGroupCommand() *cobra.Command {
	return alias(group("session-group", "Manage session groups: sessions that are placed apart, or together",
		a.sessionGroupList(), a.sessionGroupShow(), a.sessionGroupCreate(), a.sessionGroupDelete()), "session-groups")
}

func (a *app) sessionGroupList() *cobra.Command {
	return a.list("List session groups", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.SessionGroups(ctx, "")
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return sessionGroupTable(list...) })
	})
}

func sessionGroupTable(list ...client.SessionGroup) *output.Table {
	t := output.NewTable("NAME", "PLACEMENT", "STRICT", "LIVE SESSIONS", "OWNER", "PROJECT").Spare("PROJECT")
	for _, g := range list {
		t.Row(g.Name, g.Placement, yesNo(g.Strict), strconv.Itoa(g.Sessions.TotalCount), g.Owner.Title(), g.Project.Title())
	}
	return t
}

func (a *app) sessionGroupShow() *cobra.Command {
	return a.verb("show NAME", "Show a session group and its sessions, ended ones included", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := findSessionGroupID(ctx, c, args[0])
		if err != nil {
			return err
		}
		g, sessions, err := c.SessionGroup(ctx, id)
		if err != nil {
			return err
		}
		return a.print().Print(struct {
			*client.SessionGroup
			Sessions []client.Session `json:"sessions"`
		}{g, sessions}, func() error {
			s := a.sheet()
			s.fact("Name", g.Name)
			s.fact("ID", g.ID)
			s.fact("Placement", placementText(g))
			s.fact("Owner", g.Owner.Title())
			s.fact("Project", g.Project.Title())
			s.fact("Created", a.moment(&g.CreatedAt))
			s.gap()
			return a.print().Write(a.sessionTable(sessions))
		})
	})
}

// placementText says how the sessions are placed.
func placementText(g *client.SessionGroup) string {
	text := "each on an agent of its own"
	if g.Placement == "pack" {
		text = "on as few agents as possible"
	}
	if g.Strict {
		return text + ", or they wait"
	}
	return text + ", where that is possible"
}

func (a *app) sessionGroupCreate() *cobra.Command {
	var in client.CreateSessionGroupInput
	var project string
	cmd := a.verb("create NAME", "Create a session group, for berth run --group-of NAME", count(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Name = args[0]
		if in.Project, err = findProjectID(ctx, c, project); err != nil {
			return err
		}
		g, err := c.CreateSessionGroup(ctx, in)
		if err != nil {
			return err
		}
		return a.table(g, func() *output.Table { return sessionGroupTable(*g) })
	})
	cmd.Flags().StringVar(&in.Placement, "placement", "spread", "`spread`: each session on an agent of its own; pack: all on as few as possible")
	cmd.Flags().BoolVar(&in.Strict, "strict", false, "a session waits rather than be placed otherwise")
	cmd.Flags().StringVar(&project, "project", "", "project (default: your only one)")
	return cmd
}

func (a *app) sessionGroupDelete() *cobra.Command {
	return alias(a.onEach("delete NAME", "Remove session groups; their sessions continue", findSessionGroupID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteSessionGroup(ctx, id) }), "rm")
}

// findSessionGroupID finds a session group by name or id.
func findSessionGroupID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.SessionGroup, error) {
		list, err := c.SessionGroups(ctx, ref)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 0:
			return nil, notThere("session group", ref, "see: berth session-group ls")
		case len(list) > 1:
			return nil, usagef("%d session groups in sight are named %s; name one by its id", len(list), ref)
		}
		return &list[0], nil
	}, func(g *client.SessionGroup) string { return g.ID })
}
