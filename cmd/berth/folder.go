package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/spf13/cobra"
)

func (a *app) folderCommand() *cobra.Command {
	cmd := group("folder", "Manage folders and the files in them",
		a.folderList(), a.folderCreate(), a.folderRename(), a.folderPut(), a.folderGet(), a.folderSync(),
		a.folderMkdir(), a.folderMove(), a.folderRemove(), a.folderUsage(),
		a.folderTrash(), a.folderDelete(), a.folderClone(), a.folderCopy(), a.folderHandOver(), a.folderSettings(), a.folderImport(), a.folderExport())
	cmd.AddCommand(a.folderShareCommands()...)
	cmd.Aliases = []string{"folders"}
	cmd.Long = `Manage folders and the files in them. FOLDER:PATH is a path in a folder.

Other programs can use folders over WebDAV, at /storage/dav/ of the server, and
over SFTP if the storage proxy offers it, with an access token as the password:
docs/webdav.md, docs/sftp.md.`
	return cmd
}

// place is a path in a folder; path "" is its top.
type place struct{ folder, path string }

// parsePlace reads FOLDER[:PATH].
func parsePlace(text string) place {
	folder, p, _ := strings.Cut(text, ":")
	p = strings.TrimPrefix(path.Clean("/"+p), "/")
	return place{folder, p}
}

// inFolder parses a place and finds its folder.
func (a *app) inFolder(ctx context.Context, text string) (*client.Client, *client.Folder, string, error) {
	at := parsePlace(text)
	c, err := a.client()
	if err != nil {
		return nil, nil, "", err
	}
	f, err := findFolder(ctx, c, at.folder)
	return c, f, at.path, err
}

func (a *app) completeFolder(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	c, err := a.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := c.Folders(cmd.Context(), client.FolderFilter{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []string
	for _, f := range list {
		all = append(all, f.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (a *app) folderCreate() *cobra.Command {
	var flags newFolder
	cmd := a.verb("create NAME", "Create a folder of your own, or of a project", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in, err := flags.input(ctx, c, args[0])
		if err != nil {
			return err
		}
		f, err := c.CreateFolder(ctx, in)
		if err != nil {
			return err
		}
		return a.folderDone(f)
	})
	cmd.Example = "  berth folder create weights --usage-mode model\n  berth folder create shared --project thesis --permission read-only"
	flags.add(cmd, "the first one", "general", "make it the project's folder")
	return cmd
}

// newFolder are the flags of a folder to come.
type newFolder struct {
	project, volume  string
	mode, permission *string
}

// add has the flags say what holds without them.
func (n *newFolder) add(cmd *cobra.Command, volume, mode, project string) {
	cmd.Flags().StringVar(&n.project, "project", "", project)
	cmd.Flags().StringVar(&n.volume, "volume", "", "volume (default: "+volume+")")
	given(cmd, &n.mode, "usage-mode", "`mode` of use: general, data or model (default: "+mode+")", choice(usageModes...))
	sets(cmd, "usage-mode", "usageMode")
	given(cmd, &n.permission, "permission", "`permission` of the project's members: read-only, read-write or read-write-delete (default: read-write)", choice(folderPermissions...))
}

// input finds what the flags name.
func (n *newFolder) input(ctx context.Context, c *client.Client, name string) (in client.CreateVfolderInput, err error) {
	in.Name = name
	if n.mode != nil {
		in.UsageMode = *n.mode
	}
	if n.permission != nil {
		in.Permission = *n.permission
	}
	if n.project != "" {
		if in.Project, err = findProjectID(ctx, c, n.project); err != nil {
			return in, err
		}
	}
	if n.volume != "" {
		v, err := findVolume(ctx, c, n.volume)
		if err != nil {
			return in, err
		}
		in.Volume = v.ID
	}
	return in, nil
}

// folderDone prints a folder that has changed: its name for people.
func (a *app) folderDone(f *client.Folder) error {
	return a.print().Print(f, func() error {
		_, err := fmt.Fprintln(a.out, f.Name)
		return err
	})
}

func (a *app) folderRename() *cobra.Command {
	return &cobra.Command{
		Use:               "rename FOLDER NAME",
		Short:             "Rename a folder",
		Args:              count(2, 2),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, _, err := a.inFolder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if f, err = c.UpdateFolder(cmd.Context(), client.UpdateVfolderInput{ID: f.ID, Name: &args[1]}); err != nil {
				return err
			}
			return a.folderDone(f)
		},
	}
}

func (a *app) folderMkdir() *cobra.Command {
	return &cobra.Command{
		Use:               "mkdir FOLDER:PATH",
		Short:             "Create a directory in a folder",
		Args:              count(1, 1),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, dir, err := a.inFolder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if dir == "" {
				return usagef("name the directory, as %s:PATH", f.Name)
			}
			results, err := c.MakeDirectories(cmd.Context(), f.ID, []string{dir})
			return a.filesDone(results, err)
		},
	}
}

func (a *app) folderRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "rm FOLDER[:PATH]...",
		Short: "Delete files and directories permanently, or move whole folders to the trash",
		Long: `Delete files and directories in folders permanently, or move whole folders to the
trash, from which berth folder trash restore restores them. A folder that is
mounted in a session cannot be moved to the trash.`,
		Args:              count(1, -1),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(args, func(text string) error { return a.removeFrom(cmd.Context(), text) })
		},
	}
}

func (a *app) removeFrom(ctx context.Context, text string) error {
	c, f, file, err := a.inFolder(ctx, text)
	if err != nil {
		return err
	}
	if file == "" && strings.Contains(text, ":") {
		return usagef("name a path after the colon, or leave the colon out for the whole folder")
	}
	if file == "" {
		_, err = c.TrashFolder(ctx, f.ID)
		return err
	}
	results, err := c.DeleteFiles(ctx, f.ID, []string{file})
	for _, r := range results {
		if err == nil {
			err = failure(r)
		}
	}
	return err
}
