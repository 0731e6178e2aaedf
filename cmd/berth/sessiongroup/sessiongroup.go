// Package sessiongroup has the commands about session groups, whose sessions the scheduler spreads
// or packs.
package sessiongroup

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/cmd/berth/session"
)

// Command returns the command "berth session-group".
func Command(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("session-group", "Manage session groups: sessions that are placed apart, or together",
		listCommand(a), showCommand(a), createCommand(a), deleteCommand(a)), "session-groups")
}

func listCommand(a *cli.App) *cobra.Command {
	return a.List("List session groups", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.SessionGroups(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return sessionGroupTable(list...) })
	})
}

func sessionGroupTable(list ...client.SessionGroup) *output.Table {
	t := output.NewTable("NAME", "PLACEMENT", "STRICT", "LIVE SESSIONS", "OWNER", "PROJECT").Spare("PROJECT")
	for _, g := range list {
		t.Row(g.Name, g.Placement, cli.YesNo(g.Strict), strconv.Itoa(g.Sessions.TotalCount), g.Owner.Title(), g.Project.Title())
	}
	return t
}

func showCommand(a *cli.App) *cobra.Command {
	return a.Verb("show NAME", "Show a session group and its sessions, ended ones included", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := cli.FindSessionGroupID(ctx, c, args[0])
		if err != nil {
			return err
		}
		g, sessions, err := c.SessionGroup(ctx, id)
		if err != nil {
			return err
		}
		return a.Printer().Print(struct {
			*client.SessionGroup
			Sessions []client.Session `json:"sessions"`
		}{g, sessions}, func() error {
			s := a.Sheet()
			s.Fact("Name", g.Name)
			s.Fact("ID", g.ID)
			s.Fact("Placement", placementText(g))
			s.Fact("Owner", g.Owner.Title())
			s.Fact("Project", g.Project.Title())
			s.Fact("Created", a.Moment(&g.CreatedAt))
			s.Gap()
			return a.Printer().Write(session.Table(a, sessions))
		})
	})
}

// placementText describes how the sessions are placed.
func placementText(g *client.SessionGroup) string {
	text := "each on an agent of its own"
	if g.Placement == "PACK" {
		text = "on as few agents as possible"
	}
	if g.Strict {
		return text + ", or they wait"
	}
	return text + ", where that is possible"
}

func createCommand(a *cli.App) *cobra.Command {
	var in client.CreateSessionGroupInput
	var project string
	cmd := a.Verb("create NAME", "Create a session group, for berth run --group-of NAME", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Name = args[0]
		if in.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
			return err
		}
		g, err := c.CreateSessionGroup(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(g, func() *output.Table { return sessionGroupTable(*g) })
	})
	in.Placement = "SPREAD"
	cli.EnumFlag(cmd, &in.Placement, "placement", "`spread` (default): each session on an agent of its own; pack: all on as few as possible")
	cmd.Flags().BoolVar(&in.Strict, "strict", false, "a session waits rather than be placed otherwise")
	cmd.Flags().StringVar(&project, "project", "", "project (default: your only one)")
	return cmd
}

func deleteCommand(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete NAME", "Remove session groups; their sessions continue", cli.FindSessionGroupID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteSessionGroup(ctx, id) }), "rm")
}
