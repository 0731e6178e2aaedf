package image

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// mine lists the viewer's own images.
func mine(ctx context.Context, c *client.Client) ([]client.Image, error) {
	v, err := c.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	return c.OwnImages(ctx, v.User.ID)
}

// ownTable is the table of images that were made of sessions.
func ownTable(a *cli.App, list ...client.Image) *output.Table {
	t := output.NewTable("NAME", "SIZE", "ADDS", "FOR", "SAVED", "DESCRIPTION").Spare("DESCRIPTION")
	for _, i := range list {
		who := i.Visibility.String()
		if i.Project != nil {
			who = i.Project.Name
		}
		saved := ""
		if i.CommittedAt != nil {
			saved = output.Age(a.Now(), *i.CommittedAt)
		}
		t.Row(i.Name, output.Bytes(i.SizeBytes), output.Bytes(i.AddedBytes), who, saved, i.Description)
	}
	return t
}

func shareCommand(a *cli.App) *cobra.Command {
	var project string
	var private, public bool
	cmd := &cobra.Command{
		Use:     "share IMAGE",
		Short:   "Choose who can use an image that was made of a session",
		Example: "  berth image share torch-env:2 --project vision\n  berth image share torch-env:2 --private",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, i, err := find(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			in := client.UpdateImageInput{ID: i.ID}
			to := client.Enum("")
			switch {
			case project != "" && !private && !public:
				id, err := cli.FindProjectID(cmd.Context(), c, project)
				if err != nil {
					return err
				}
				to, in.Project = "PROJECT", id
			case private && project == "" && !public:
				to = "PRIVATE"
			case public && project == "" && !private:
				to = "PUBLIC"
			default:
				return cli.Usagef("set one of --project, --private and --public")
			}
			in.Visibility = to
			return show(cmd.Context(), a, c, in)
		},
	}
	f := cmd.Flags()
	f.StringVar(&project, "project", "", "the members of this `project` can use it, by name or id")
	f.BoolVar(&private, "private", false, "only its owner can use it")
	f.BoolVar(&public, "public", false, "everyone can use it, and it no longer has an owner; only for superadmins")
	cli.SetsField(cmd, "public", "visibility")
	return cmd
}

func renameCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("rename IMAGE NAME[:TAG]", "Rename an image that was made of a session", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			i, err := cli.FindImage(ctx, c, args[0])
			if err != nil {
				return err
			}
			name, tag, _ := strings.Cut(args[1], ":")
			if i, err = c.RenameImage(ctx, client.RenameImageInput{ID: i.ID, Name: name, Tag: tag}); err != nil {
				return err
			}
			return a.Table(i, func() *output.Table { return ownTable(a, *i) })
		})
	cmd.Long = `Rename an image that was made of a session. Without a new tag, it keeps its tag.
Sessions that run keep the image, and new ones start from its new name.`
	cmd.Example = "  berth image rename torch-env:2 vision-env:1"
	return cmd
}

func find(ctx context.Context, a *cli.App, ref string) (*client.Client, *client.Image, error) {
	c, err := a.Client()
	if err != nil {
		return nil, nil, err
	}
	i, err := cli.FindImage(ctx, c, ref)
	return c, i, err
}

func show(ctx context.Context, a *cli.App, c *client.Client, in client.UpdateImageInput) error {
	i, err := c.UpdateImage(ctx, in)
	if err != nil {
		return err
	}
	return a.Table(i, func() *output.Table { return ownTable(a, *i) })
}
