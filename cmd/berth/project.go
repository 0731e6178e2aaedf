package main

import (
	"strings"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/spf13/cobra"
)

func (a *app) projectCommand() *cobra.Command {
	return group("project", "Work with projects and their members",
		a.projectList(), a.projectShow(), a.projectCreate(), a.projectAdd(), a.projectRemove())
}

func (a *app) projectList() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List projects",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Projects(cmd.Context(), "")
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return projectTable(list...) })
		},
	}
}

func projectTable(list ...client.Project) *output.Table {
	t := output.NewTable("NAME", "DOMAIN", "MEMBERS", "HELD", "DESCRIPTION")
	for _, p := range list {
		t.Row(p.Name, p.Domain.Name, members(p), output.Slots(p.Occupied), p.Description)
	}
	return t
}

func members(p client.Project) string {
	var all []string
	for _, m := range p.Memberships {
		text := m.User.Email
		if m.Admin {
			text += " (admin)"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (a *app) projectShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show PROJECT",
		Short: "Show a project and its members",
		Args:  count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			p, err := findProject(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return a.table(p, func() *output.Table {
				t := output.NewTable("MEMBER", "ADMIN")
				for _, m := range p.Memberships {
					admin := "no"
					if m.Admin {
						admin = "yes"
					}
					t.Row(m.User.Email, admin)
				}
				return t
			})
		},
	}
}

func (a *app) projectCreate() *cobra.Command {
	var in client.CreateProjectInput
	var domain string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a project",
		Args:  count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			in.Name = args[0]
			if in.Domain, err = domainID(cmd, c, domain); err != nil {
				return err
			}
			p, err := c.CreateProject(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.table(p, func() *output.Table { return projectTable(*p) })
		},
	}
	cmd.Flags().StringVar(&in.Description, "description", "", "what it is for")
	cmd.Flags().StringVar(&domain, "domain", "", "domain (default: yours)")
	return cmd
}

func (a *app) projectAdd() *cobra.Command {
	var admin bool
	cmd := a.onMember("add PROJECT USER...", "Make users members, or administrators, of a project",
		func(cmd *cobra.Command, c *client.Client, project, user string) error {
			_, err := c.SetMembership(cmd.Context(), project, user, admin)
			return err
		})
	cmd.Flags().BoolVar(&admin, "admin", false, "let them administer the project")
	return cmd
}

func (a *app) projectRemove() *cobra.Command {
	return a.onMember("remove PROJECT USER...", "End memberships",
		func(cmd *cobra.Command, c *client.Client, project, user string) error {
			_, err := c.RemoveMembership(cmd.Context(), project, user)
			return err
		})
}

func (a *app) onMember(use, short string, do func(cmd *cobra.Command, c *client.Client, project, user string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  count(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			p, err := findProject(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return a.each(args[1:], func(ref string) error {
				u, err := findUser(cmd.Context(), c, ref)
				if err != nil {
					return err
				}
				return do(cmd, c, p.ID, u.ID)
			})
		},
	}
}
