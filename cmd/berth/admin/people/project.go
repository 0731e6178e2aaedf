package people

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ProjectCommand returns the command "berth admin project".
func ProjectCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("project", "Manage projects and their members",
		projectList(a), projectShow(a), projectCreate(a), projectUpdate(a),
		projectActive(a, "activate", "Activate projects: sessions can start in them", true),
		projectActive(a, "deactivate", "Deactivate projects: nothing new starts in them", false),
		projectPurge(a), projectAdd(a), projectRemove(a))
	cmd.Long = `Manage projects and their members. PROJECT is a name, DOMAIN/NAME where several
domains have a project of that name, or an ID.`
	return cli.Alias(cmd, "projects")
}

func projectList(a *cli.App) *cobra.Command {
	var domain string
	cmd := a.List("List projects", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Projects(ctx, "")
		if err != nil {
			return err
		}
		if list, err = inDomain(ctx, c, domain, list, func(p client.Project) string { return p.Domain.ID }); err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return projectTable(list...) })
	})
	cmd.Flags().StringVar(&domain, "domain", "", "only those of this domain")
	return cmd
}

// inDomain filters objects by domain; "" means all.
func inDomain[T any](ctx context.Context, c *client.Client, ref string, list []T, of func(T) string) ([]T, error) {
	if ref == "" {
		return list, nil
	}
	d, err := cli.FindDomain(ctx, c, ref)
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
		t.Row(p.Name, p.Domain.Name, cli.Sentence(p.Type.String()), cli.ActiveCell(p.Active), strconv.Itoa(p.Memberships.TotalCount), cli.PoliciesText(p.Policies),
			output.Slots(p.Occupied), p.Description)
	}
	return t
}

func projectShow(a *cli.App) *cobra.Command {
	return a.Verb("show PROJECT", "Show a project and its members", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		project, err := cli.FindProject(ctx, c, args[0])
		if err != nil {
			return err
		}
		members, err := c.ProjectMembers(ctx, project.ID)
		if err != nil {
			return err
		}
		p := a.Printer()
		shown := struct {
			*client.Project
			Members []client.Membership `json:"members"`
		}{project, members}
		return p.Print(shown, func() error {
			s := a.Sheet()
			s.Fact("Name", project.Name)
			s.Fact("ID", project.ID)
			s.Fact("Domain", project.Domain.Name)
			s.Fact("Type", cli.Sentence(project.Type.String()))
			s.Fact("State", cli.ActiveCell(project.Active).Text)
			s.Fact("Description", project.Description)
			s.Fact("Policies", cli.PoliciesText(project.Policies))
			s.Fact("Held", output.Slots(project.Occupied))
			s.Fact("Created", a.Moment(&project.CreatedAt))
			s.Gap()
			t := output.NewTable("MEMBER", "ADMIN")
			for _, m := range members {
				t.Row(m.User.Email, cli.YesNo(m.Admin))
			}
			return p.Write(t)
		})
	})
}

func projectCreate(a *cli.App) *cobra.Command {
	var in client.CreateProjectInput
	var domain, policy string
	var kind *client.Enum
	cmd := a.Verb("create NAME", "Create a project", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		in.Name = args[0]
		if kind != nil {
			in.Type = *kind
		}
		if in.Domain, err = cli.DomainOrMine(ctx, c, domain); err != nil {
			return err
		}
		if in.Policy, err = cli.FindPolicyID(ctx, c, policy); err != nil {
			return err
		}
		p, err := c.CreateProject(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(p, func() *output.Table { return projectTable(*p) })
	})
	cli.OptionalFlag(cmd, &kind, "type", "`kind` of project: general (default) or model-store, whose folders are models that members read and its administrators write", cli.Choice("general", "model_store"))
	flags := cmd.Flags()
	flags.StringVar(&in.Description, "description", "", "its purpose")
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringVar(&policy, "policy", "", "resource policy that binds all in it")
	return cmd
}

func projectUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateProjectInput
	cmd := a.Verb("update PROJECT", "Change a project's name or description", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		p, err := cli.FindProject(ctx, c, args[0])
		if err != nil {
			return err
		}
		in.ID = p.ID
		if p, err = c.UpdateProject(ctx, in); err != nil {
			return err
		}
		return a.Table(p, func() *output.Table { return projectTable(*p) })
	})
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.OptionalText(cmd, &in.Description, "description", "its purpose, a `text`")
	return cmd
}

func projectActive(a *cli.App, name, short string, active bool) *cobra.Command {
	return a.OnEach(name+" PROJECT", short, cli.FindProjectID, func(ctx context.Context, c *client.Client, id string) error {
		_, err := c.UpdateProject(ctx, client.UpdateProjectInput{ID: id, Active: &active})
		return err
	})
}

func projectPurge(a *cli.App) *cobra.Command {
	var yes bool
	cmd := a.Verb("purge PROJECT", "Remove a project, its memberships and its history permanently", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			p, err := cli.FindProject(ctx, c, args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(ctx, "project", p.Name, yes); err != nil {
				return err
			}
			return a.Removed(p.Name, c.DeleteProject(ctx, p.ID, p.Name))
		})
	cmd.Long = `Remove a project, its memberships and its history permanently. This is refused
while the project has live sessions or folders.`
	cli.YesFlag(cmd, &yes)
	return cmd
}

func projectAdd(a *cli.App) *cobra.Command {
	var admin bool
	cmd := onMember(a, "add PROJECT USER...", "Add members or administrators to a project",
		func(ctx context.Context, c *client.Client, project, user string) error {
			_, err := c.AddMembership(ctx, project, user, admin)
			return err
		})
	cmd.Flags().BoolVar(&admin, "admin", false, "make them administrators of the project; without it, administrators become members")
	return cmd
}

func projectRemove(a *cli.App) *cobra.Command {
	return cli.Alias(onMember(a, "remove PROJECT USER...", "Remove members from a project",
		func(ctx context.Context, c *client.Client, project, user string) error {
			_, err := c.RemoveMembership(ctx, project, user)
			return err
		}), "rm")
}

func onMember(a *cli.App, use, short string, do func(ctx context.Context, c *client.Client, project, user string) error) *cobra.Command {
	return a.Verb(use, short, cli.Args(2, -1), func(ctx context.Context, c *client.Client, args []string) error {
		project, err := cli.FindProjectID(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Each(args[1:], func(ref string) error {
			user, err := cli.FindUserID(ctx, c, ref)
			if err != nil {
				return err
			}
			return do(ctx, c, project, user)
		})
	})
}
