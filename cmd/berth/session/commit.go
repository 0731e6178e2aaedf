package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/admin/task"
	"github.com/berthhq/berth/cmd/berth/cli"
)

func commitCommand(a *cli.App) *cobra.Command {
	var description, project string
	var detach bool
	cmd := onSession(a, &cobra.Command{
		Use:   "commit SESSION NAME[:TAG]",
		Short: "Save a running session as an image",
		Long: `Save a running session as an image that you, or the members of a project, can
start sessions from. The image has all files that the session changed, except
those in mounted folders and in the home directory, files that Berth added,
temporary files, histories of shells, and files with credentials such as .ssh
and .netrc. Environment variables of the session are not in the image.

The session is paused while the files that change at the time are copied. The
command ends when the image is complete; Ctrl-C leaves the task running, and
"berth admin task cancel" cancels it.`,
		Example: "  berth session commit lab torch-env:2\n  berth session commit lab torch-env --project vision --description 'with flash-attn'",
		Args:    cli.Args(2, 2),
	}, func(ctx context.Context, c *client.Client, s *client.Session, args []string) error {
		name, tag, _ := strings.Cut(args[0], ":")
		in := client.CommitSessionInput{Session: s.ID, Name: name, Tag: tag, Description: description}
		if project != "" {
			id, err := cli.FindProjectID(ctx, c, project)
			if err != nil {
				return err
			}
			in.Project = id
		}
		t, reference, err := c.CommitSession(ctx, in)
		if err != nil {
			return err
		}
		if !detach {
			if t, err = task.UntilEnded(ctx, a, c, t); err != nil {
				return err
			}
			if err := task.Failure(t); err != nil {
				return err
			}
		}
		out := struct {
			Reference string       `json:"reference"`
			Task      *client.Task `json:"task"`
		}{reference, t}
		return a.Printer().Print(out, func() error {
			text := reference
			if detach {
				text += ": task " + t.ID
			}
			if t.Message != "" {
				text += "\n" + t.Message
			}
			_, err := fmt.Fprintln(a.Out, text)
			return err
		})
	})
	f := cmd.Flags()
	f.StringVar(&description, "description", "", "`text` for people, at most 1000 characters")
	f.StringVar(&project, "project", "", "share the image with the members of this `project`, by name or id")
	f.BoolVar(&detach, "detach", false, "return at once, and print the id of the task")
	return cmd
}
