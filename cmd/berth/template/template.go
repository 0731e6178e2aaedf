// Package template has the commands about templates, which are saved requests for sessions,
// and berth apply.
package template

import (
	"context"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth template".
func Command(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("template", "Manage templates: saved requests, for berth session create --template NAME",
		listCommand(a), createCommand(a), exportCommand(a), importCommand(a), shareCommand(a), deleteCommand(a)), "templates")
}

func listCommand(a *cli.App) *cobra.Command {
	return a.List("List your templates and those of your projects", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.SessionTemplates(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return table(a, list...) })
	})
}

func table(a *cli.App, list ...client.SessionTemplate) *output.Table {
	t := output.NewTable("NAME", "OWNER", "IMAGE", "RESOURCES", "UPDATED", "DESCRIPTION")
	for _, x := range list {
		of := x.Owner.Title()
		if x.Project != nil {
			of = "project " + x.Project.Name
		}
		t.Row(x.Name, of, x.Request.Image, output.Slots(x.Request.Slots), output.Age(a.Now(), x.UpdatedAt), x.Description)
	}
	return t
}

func createCommand(a *cli.App) *cobra.Command {
	var from, project, description string
	cmd := a.Verb("create NAME --from SESSION", "Save the request of a session as a template", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		s, err := cli.FindSession(ctx, c, from)
		if err != nil {
			return err
		}
		row, err := c.SessionRequest(ctx, s.ID)
		if err != nil {
			return err
		}
		if row.Request == nil {
			return fmt.Errorf("you cannot enter session %s, so you cannot read its request", s.Name)
		}
		in := client.CreateSessionTemplateInput{Name: args[0], Description: description, Request: cli.Convert[client.CreateSessionInput](row.Request)}
		in.Request.Name, in.Request.StartsAt, in.Request.DependsOn = "", nil, nil
		if in.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
			return err
		}
		t, err := c.CreateSessionTemplate(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(t, func() *output.Table { return table(a, *t) })
	})
	cmd.Flags().StringVar(&from, "from", "", "the `session`, by name or id")
	cmd.Flags().StringVar(&project, "project", "", "share it with this project")
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

func exportCommand(a *cli.App) *cobra.Command {
	return a.Verb("export NAME", "Print a template as YAML, for berth apply -f", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		t, err := cli.FindTemplate(ctx, c, args[0])
		if err != nil {
			return err
		}
		d, err := exported(ctx, c, t)
		if err != nil {
			return err
		}
		text, err := yaml.MarshalWithOptions(d, yaml.UseLiteralStyleIfMultiline(true))
		if err != nil {
			return fmt.Errorf("write template %s: %w", t.Name, err)
		}
		_, err = a.Out.Write(text)
		return err
	})
}

func importCommand(a *cli.App) *cobra.Command {
	return a.Verb("import FILE", "Create or update the templates of a YAML file; - reads standard input", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		x := applier{app: a, client: c, only: kindTemplate}
		return x.file(ctx, args[0])
	})
}

func shareCommand(a *cli.App) *cobra.Command {
	return a.Verb("share NAME PROJECT", "Give a template to a project: its members can use it, and its admins change it", cli.Args(2, 2), func(ctx context.Context, c *client.Client, args []string) error {
		t, err := cli.FindTemplate(ctx, c, args[0])
		if err != nil {
			return err
		}
		project, err := cli.FindProjectID(ctx, c, args[1])
		if err != nil {
			return err
		}
		if t, err = c.UpdateSessionTemplate(ctx, client.UpdateSessionTemplateInput{ID: t.ID, Project: project}); err != nil {
			return err
		}
		return a.Table(t, func() *output.Table { return table(a, *t) })
	})
}

func deleteCommand(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete NAME", "Remove templates; sessions that were started with them continue", cli.FindTemplateID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteSessionTemplate(ctx, id) }), "rm")
}
