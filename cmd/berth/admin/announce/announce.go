// Package announce has the commands about announcements.
package announce

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth admin announce".
func Command(a *cli.App) *cobra.Command {
	return cli.Group("announce", "Show texts to people in the page and in this program", listCommand(a), createCommand(a), deleteCommand(a))
}

func table(a *cli.App, list ...client.Announcement) *output.Table {
	t := output.NewTable("ID", "SEVERITY", "AUDIENCE", "FROM", "UNTIL", "TEXT")
	for _, n := range list {
		words := cli.EnumTexts([]client.Enum{n.Severity, n.Audience})
		until := "deleted"
		if n.EndsAt != nil {
			until = cli.Clock(*n.EndsAt)
		}
		t.Row(n.ID, words[0], words[1], cli.Clock(n.StartsAt), until, strings.ReplaceAll(n.Text, "\n", " "))
	}
	return t
}

func listCommand(a *cli.App) *cobra.Command {
	return a.List("List announcements, the newest first", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Announcements(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return table(a, list...) })
	})
}

func createCommand(a *cli.App) *cobra.Command {
	var severity, domain, project, from, until string
	var admins, sticky bool
	cmd := a.Verb("create TEXT", "Show a text to people", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		dismissable := !sticky
		in := client.CreateAnnouncementInput{Text: args[0], Severity: cli.Enum(severity), Dismissable: &dismissable, Audience: "EVERYONE"}
		switch {
		case admins:
			in.Audience = "ADMINS"
		case domain != "":
			in.Audience = "DOMAIN"
			in.ScopeID, err = cli.FindDomainID(ctx, c, domain)
		case project != "":
			in.Audience = "PROJECT"
			in.ScopeID, err = cli.FindProjectID(ctx, c, project)
		}
		if err != nil {
			return err
		}
		if from != "" {
			if in.StartsAt, err = a.ParseEnd("--from", from); err != nil {
				return err
			}
		}
		if until != "" {
			if in.EndsAt, err = a.ParseEnd("--until", until); err != nil {
				return err
			}
		}
		made, err := c.CreateAnnouncement(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(made, func() *output.Table { return table(a, *made) })
	})
	cmd.Long = "Show a text to people, on top of every page and once in this program. The text is\nMarkdown without HTML."
	cmd.Example = `  berth admin announce create "Maintenance on **Friday** from 18:00" --severity warning --until 2026-01-31`
	f := cmd.Flags()
	f.StringVar(&severity, "severity", "info", "info, warning or error")
	f.StringVar(&domain, "domain", "", "only to the users of this domain")
	f.StringVar(&project, "project", "", "only to the members of this project")
	f.BoolVar(&admins, "admins", false, "only to administrators")
	f.StringVar(&from, "from", "", "when it begins: a date, a time or a duration from now (default now)")
	f.StringVar(&until, "until", "", "when it ends: a date, a time or a duration from now (default: when it is deleted)")
	f.BoolVar(&sticky, "sticky", false, "people cannot hide it")
	cmd.MarkFlagsMutuallyExclusive("domain", "project", "admins")
	for flag, field := range map[string]string{"domain": "scopeID", "project": "scopeID", "admins": "audience", "from": "startsAt", "until": "endsAt", "sticky": "dismissable"} {
		cli.SetsField(cmd, flag, field)
	}
	return cmd
}

func deleteCommand(a *cli.App) *cobra.Command {
	same := func(_ context.Context, _ *client.Client, ref string) (string, error) { return ref, nil }
	cmd := a.OnEach("rm ID", "Delete announcements", same, func(ctx context.Context, c *client.Client, id string) error {
		return a.Removed(id, c.DeleteAnnouncement(ctx, id))
	})
	cmd.Aliases = []string{"delete"}
	return cmd
}
