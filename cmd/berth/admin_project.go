package main

import (
	"context"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) projectCommand() *cobra.Command {
	cmd := group("project", "Manage projects and their members",
		a.projectList(), a.projectShow(), a.projectCreate(), a.projectUpdate(),
		a.projectActive("activate", "Activate projects: sessions can start in them", true),
		a.projectActive("deactivate", "Deactivate projects: nothing new starts in them", false),
		a.projectPurge(), a.projectAdd(), a.projectRemove())
	cmd.Long = `Manage projects and their members. PROJECT is a name, DOMAIN/NAME where several
domains have a project of that name, or an ID.`
	return alias(cmd, "projects")
}

func (a *app) projectList() *cobra.Command {
	var domain string
	cmd := a.list("List projects", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Projects(ctx, "")
		if err != nil {
			return err
		}
		if list, err = inDomain(ctx, c, domain, list, func(p client.Project) string { return p.Domain.ID }); err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return projectTable(list...) })
	})
	cmd.Flags().StringVar(&domain, "domain", "", "only those of this domain")
	return cmd
}

// inDomain keeps what is of a domain, "" for all.
func inDomain[T any](ctx context.Context, c *client.Client, ref string, list []T, of func(T) string) ([]T, error) {
	if ref == "" {
		return list, nil
	}
	d, err := findDomain(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	kept := []T{}
	for _, x := range list {
		if of(x) == d.ID {
			kept = append(kept, x)
		}
	}
	return kept, nil
}

func projectTable(list ...client.Project) *output.Table {
	t := output.NewTable("NAME", "DOMAIN", "TYPE", "STATE", "MEMBERS", "POLICIES", "HELD", "DESCRIPTION").Spare("DESCRIPTION", "HELD", "TYPE")
	for _, p := range list {
		t.Row(p.Name, p.Domain.Name, sentence(p.Type), activity(p.Active), members(p), policiesText(p.Policies),
			output.Slots(p.Occupied), p.Description)
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
	return a.verb("show PROJECT", "Show a project and its members", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		project, err := findProject(ctx, c, args[0])
		if err != nil {
			return err
		}
		p := a.print()
		return p.Print(project, func() error {
			s := a.sheet()
			s.fact("Name", project.Name)
			s.fact("ID", project.ID)
			s.fact("Domain", project.Domain.Name)
			s.fact("Type", sentence(project.Type))
			s.fact("State", activity(project.Active).Text)
			s.fact("Description", project.Description)
			s.fact("Policies", policiesText(project.Policies))
			s.fact("Held", output.Slots(project.Occupied))
			s.fact("Created", a.moment(&project.CreatedAt))
			s.gap()
			t := output.NewTable("MEMBER", "ADMIN")
			for _, m := range project.Memberships {
				t.Row(m.User.Email, yesNo(m.Admin))
			}
			return p.Write(t)
		})
	})
}

func (a *app) projectCreate() *cobra.Command {
	var in client.CreateProjectInput
	var domain, policy string
	var kind *string
	cmd := a.verb("create NAME", "Create a project", count(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Name = args[0]
		if kind != nil {
			in.Type = *kind
		}
		if in.Domain, err = domainOrMine(ctx, c, domain); err != nil {
			return err
		}
		if in.Policy, err = findPolicyID(ctx, c, policy); err != nil {
			return err
		}
		p, err := c.CreateProject(ctx, in)
		if err != nil {
			return err
		}
		return a.table(p, func() *output.Table { return projectTable(*p) })
	})
	given(cmd, &kind, "type", "`kind` of project: general (default) or model-store, whose folders are models that members read and its administrators write", choice("general", "model_store"))
	flags := cmd.Flags()
	flags.StringVar(&in.Description, "description", "", "its purpose")
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringVar(&policy, "policy", "", "resource policy that binds all in it")
	return cmd
}

func (a *app) projectUpdate() *cobra.Command {
	var in client.UpdateProjectInput
	cmd := a.verb("update PROJECT", "Change a project's name or description", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := changes(in); err != nil {
			return err
		}
		p, err := findProject(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = p.ID
		if p, err = c.UpdateProject(ctx, in); err != nil {
			return err
		}
		return a.table(p, func() *output.Table { return projectTable(*p) })
	})
	givenText(cmd, &in.Name, "name", "another `name`")
	givenText(cmd, &in.Description, "description", "its purpose, a `text`")
	return cmd
}

func (a *app) projectActive(name, short string, active bool) *cobra.Command {
	return a.onEach(name+" PROJECT", short, findProjectID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateProject(ctx, client.UpdateProjectInput{ID: id, Active: &active})
		return err
	})
}

func (a *app) projectPurge() *cobra.Command {
	var yes bool
	cmd := a.verb("purge PROJECT", "Remove a project, its memberships and its history permanently", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			p, err := findProject(ctx, c, args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(ctx, "project", p.Name, yes); err != nil {
				return err
			}
			return a.gone(p.Name, c.PurgeProject(ctx, p.ID, p.Name))
		})
	cmd.Long = `Remove a project, its memberships and its history permanently. This is refused
while the project has live sessions or folders.`
	yesFlag(cmd, &yes)
	return cmd
}

func (a *app) projectAdd() *cobra.Command {
	var admin bool
	cmd := a.onMember("add PROJECT USER...", "Add members or administrators to a project",
		func(ctx context.Context, c *client.Client, project, user string) error {
			_, err := c.SetMembership(ctx, project, user, admin)
			return err
		})
	cmd.Flags().BoolVar(&admin, "admin", false, "make them administrators of the project; without it, administrators become members")
	return cmd
}

func (a *app) projectRemove() *cobra.Command {
	return alias(a.onMember("remove PROJECT USER...", "Remove members from a project",
		func(ctx context.Context, c *client.Client, project, user string) error {
			_, err := c.RemoveMembership(ctx, project, user)
			return err
		}), "rm")
}

func (a *app) onMember(use, short string, do func(ctx context.Context, c *client.Client, project, user string) error) *cobra.Command {
	return a.verb(use, short, count(2, -1), func(ctx context.Context, c *client.Client, args []string) error {
		project, err := findProjectID(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.each(args[1:], func(ref string) error {
			user, err := findUserID(ctx, c, ref)
			if err != nil {
				return err
			}
			return do(ctx, c, project, user)
		})
	})
}
