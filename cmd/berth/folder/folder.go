// Package folder has the commands about folders, their sharing, their trash and the
// files in them.
package folder

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/folder/transfer"
)

// Command returns the command "berth folder".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("folder", "Manage folders and the files in them",
		listCommand(a), createCommand(a), renameCommand(a), transfer.PutCommand(a), transfer.GetCommand(a), transfer.SyncCommand(a),
		mkdirCommand(a), moveCommand(a), removeCommand(a), usageCommand(a),
		trashCommand(a), deleteCommand(a), cloneCommand(a), copyCommand(a), handOverCommand(a), settingsCommand(a), importCommand(a), exportCommand(a))
	cmd.AddCommand(shareCommands(a)...)
	cmd.Aliases = []string{"folders"}
	cmd.Long = `Manage folders and the files in them. FOLDER:PATH is a path in a folder.

Other programs can use folders over WebDAV, at /storage/dav/ of the server, and
over SFTP if the storage proxy offers it, with an access token as the password:
docs/webdav.md, docs/sftp.md.`
	return cmd
}

func createCommand(a *cli.App) *cobra.Command {
	var flags newFolder
	cmd := a.Verb("create NAME", "Create a folder of your own, or of a project", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in, err := flags.input(ctx, c, args[0])
		if err != nil {
			return err
		}
		f, err := c.CreateFolder(ctx, in)
		if err != nil {
			return err
		}
		return folderDone(a, f)
	})
	cmd.Example = "  berth folder create weights --usage-mode model\n  berth folder create shared --project thesis --permission read-only"
	flags.add(cmd, "the first one", "general", "make it the project's folder")
	return cmd
}

// newFolder has the flags for a new folder.
type newFolder struct {
	project, volume  string
	mode, permission *client.Enum
}

// add adds the flags to a command, with the defaults in their help.
func (n *newFolder) add(cmd *cobra.Command, volume, mode, project string) {
	cmd.Flags().StringVar(&n.project, "project", "", project)
	cmd.Flags().StringVar(&n.volume, "volume", "", "volume (default: "+volume+")")
	cli.OptionalFlag(cmd, &n.mode, "usage-mode", "`mode` of use: general, data or model (default: "+mode+")", cli.Choice(usageModes...))
	cli.SetsField(cmd, "usage-mode", "usageMode")
	cli.OptionalFlag(cmd, &n.permission, "permission", "`permission` of the project's members: read-only, read-write or read-write-delete (default: read-write)", cli.Choice(folderPermissions...))
}

// input looks up the objects that the flags name.
func (n *newFolder) input(ctx context.Context, c *client.Client, name string) (in client.CreateVfolderInput, err error) {
	in.Name = name
	if n.mode != nil {
		in.UsageMode = *n.mode
	}
	if n.permission != nil {
		in.Permission = *n.permission
	}
	if n.project != "" {
		if in.Project, err = cli.FindProjectID(ctx, c, n.project); err != nil {
			return in, err
		}
	}
	if n.volume != "" {
		v, err := cli.FindVolume(ctx, c, n.volume)
		if err != nil {
			return in, err
		}
		in.Volume = v.ID
	}
	return in, nil
}

// folderDone prints a changed folder: only its name for people.
func folderDone(a *cli.App, f *client.Folder) error {
	return a.Printer().Print(f, func() error {
		_, err := fmt.Fprintln(a.Out, f.Name)
		return err
	})
}

func renameCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "rename FOLDER NAME",
		Short:             "Rename a folder",
		Args:              cli.Args(2, 2),
		ValidArgsFunction: a.CompleteFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, _, err := a.FindPlace(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if f, err = c.UpdateFolder(cmd.Context(), client.UpdateVfolderInput{ID: f.ID, Name: &args[1]}); err != nil {
				return err
			}
			return folderDone(a, f)
		},
	}
}

func mkdirCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "mkdir FOLDER:PATH",
		Short:             "Create a directory in a folder",
		Args:              cli.Args(1, 1),
		ValidArgsFunction: a.CompleteFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, dir, err := a.FindPlace(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if dir == "" {
				return cli.Usagef("name the directory, as %s:PATH", f.Name)
			}
			results, err := c.CreateDirectories(cmd.Context(), f.ID, []string{dir})
			return filesDone(a, results, err)
		},
	}
}

func removeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "rm FOLDER[:PATH]...",
		Short: "Delete files and directories permanently, or move whole folders to the trash",
		Long: `Delete files and directories in folders permanently, or move whole folders to the
trash, from which berth folder trash restore restores them. A folder that is
mounted in a session cannot be moved to the trash.`,
		Args:              cli.Args(1, -1),
		ValidArgsFunction: a.CompleteFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Each(args, func(text string) error { return removeFrom(cmd.Context(), a, text) })
		},
	}
}

func removeFrom(ctx context.Context, a *cli.App, text string) error {
	c, f, file, err := a.FindPlace(ctx, text)
	if err != nil {
		return err
	}
	if file == "" && strings.Contains(text, ":") {
		return cli.Usagef("name a path after the colon, or leave the colon out for the whole folder")
	}
	if file == "" {
		_, err = c.TrashFolder(ctx, f.ID)
		return err
	}
	results, err := c.DeleteFiles(ctx, f.ID, []string{file})
	for _, r := range results {
		if err == nil {
			err = transfer.FileError(r)
		}
	}
	return err
}
