package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/spf13/cobra"
)

func (a *app) folderCommand() *cobra.Command {
	cmd := group("folder", "Work with folders and the files in them",
		a.folderList(), a.folderCreate(), a.folderRename(), a.folderPut(), a.folderGet(), a.folderSync(),
		a.folderFiles(), a.folderMkdir(), a.folderMove(), a.folderRemove(),
		a.folderTrash(), a.folderDelete(), a.folderClone(), a.folderCopy(), a.folderHandOver(), a.folderSettings())
	cmd.AddCommand(a.folderShareCommands()...)
	cmd.Aliases = []string{"folders"}
	cmd.Long = `Work with folders and the files in them. FOLDER:PATH means a path in a folder.

Other programs reach folders by WebDAV, at /storage/dav/ of the server, and by SFTP
where the storage proxy offers it, with an access token as the password:
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

func (a *app) folderList() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List folders",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := c.Folders(cmd.Context(), client.FolderFilter{})
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table { return a.folderTable(list...) })
		},
	}
}

func (a *app) folderTable(list ...client.Folder) *output.Table {
	t := output.NewTable("NAME", "OWNER", "VOLUME", "SIZE", "MOUNTED BY", "AGE", "ID").Spare("ID", "VOLUME")
	for _, f := range list {
		owner := ""
		if f.Owner != nil {
			owner = f.Owner.Email
		}
		if f.Project != nil {
			owner = "project " + f.Project.Name
		}
		size := ""
		if f.UsedBytes != nil {
			size = output.Bytes(*f.UsedBytes)
		}
		t.Row(f.Name, owner, f.QuotaScope.Volume.Name, size, names(f.MountedBy), output.Age(a.now(), f.CreatedAt), f.ID)
	}
	return t
}

func (a *app) folderCreate() *cobra.Command {
	var project, volume string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a folder of your own, or of a project",
		Args:  count(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if project != "" {
				p, err := findProject(cmd.Context(), c, project)
				if err != nil {
					return err
				}
				project = p.ID
			}
			if volume != "" {
				v, err := findVolume(cmd.Context(), c, volume)
				if err != nil {
					return err
				}
				volume = v.ID
			}
			f, err := c.CreateFolder(cmd.Context(), args[0], project, volume)
			if err != nil {
				return err
			}
			return a.folderDone(f)
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "make it the project's folder")
	cmd.Flags().StringVar(&volume, "volume", "", "volume (default: the first one)")
	return cmd
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
		Short:             "Give a folder another name",
		Args:              count(2, 2),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, _, err := a.inFolder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if f, err = c.UpdateFolder(cmd.Context(), client.UpdateFolderInput{ID: f.ID, Name: args[1]}); err != nil {
				return err
			}
			return a.folderDone(f)
		},
	}
}

func (a *app) folderFiles() *cobra.Command {
	return &cobra.Command{
		Use:               "files FOLDER[:PATH]",
		Short:             "List a directory of a folder",
		Args:              count(1, 1),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, dir, err := a.inFolder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list, err := c.Files(cmd.Context(), f.ID, dir)
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table {
				t := output.NewTable("NAME", "TYPE", "SIZE", "CHANGED")
				for _, f := range list {
					size := ""
					if f.Type == "file" {
						size = output.Bytes(f.Size)
					}
					t.Row(f.Name, f.Type, size, f.ModifiedAt.Local().Format("2006-01-02 15:04:05"))
				}
				return t
			})
		},
	}
}

func (a *app) folderMkdir() *cobra.Command {
	return &cobra.Command{
		Use:               "mkdir FOLDER:PATH",
		Short:             "Make a directory in a folder",
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
			return a.filesDone(c.MakeDirectories(cmd.Context(), f.ID, []string{dir}))
		},
	}
}

// filesDone prints what came of each path, and fails as the first that failed.
func (a *app) filesDone(results []client.FileResult, err error) error {
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Error != nil {
			return fmt.Errorf("%s: %s", output.Clean(r.Path), *r.Error)
		}
	}
	return a.print().Print(results, func() error {
		for _, r := range results {
			if _, err := fmt.Fprintln(a.out, output.Clean(r.Path)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) folderMove() *cobra.Command {
	var overwrite bool
	cmd := &cobra.Command{
		Use:               "mv FOLDER:FROM TO",
		Short:             "Move or rename a file or directory within a folder",
		Args:              count(2, 2),
		ValidArgsFunction: a.completeFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, f, from, err := a.inFolder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			to := strings.TrimPrefix(args[1], parsePlace(args[0]).folder+":")
			items := []client.MoveItem{{From: from, To: parsePlace(":" + to).path}}
			return a.filesDone(c.MoveFiles(cmd.Context(), f.ID, items, overwrite))
		},
	}
	cmd.Flags().BoolVarP(&overwrite, "force", "f", false, "replace a file that is there")
	return cmd
}

func (a *app) folderRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "rm FOLDER[:PATH]...",
		Short: "Delete files and directories for ever, or put whole folders into the trash",
		Long: `Delete files and directories in folders for ever, or put whole folders into the
trash, from where berth folder trash restore takes them. A folder that a session
mounts cannot go.`,
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
