package folder

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// listing are the flags of berth folder ls.
type listing struct {
	long, below          bool
	mine, shared, others bool
	search               string
	project, owner       string
	mode                 *client.Enum
}

func listCommand(a *cli.App) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:     "ls [FOLDER[:PATH]]",
		Aliases: []string{"list", "files"},
		Short:   "List folders, or the files of one",
		Long: `List folders, or the files of a folder or directory. --search finds names that
contain a text, ignoring case: names of folders, or of all files and directories
below PATH. The server searches.`,
		Example: "  berth folder ls --mine -l\n  berth folder ls data:runs -R\n  berth folder ls data --search checkpoint",
		Args:    cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return listFiles(cmd.Context(), a, args[0], l)
			}
			return listFolders(cmd.Context(), a, l)
		},
		ValidArgsFunction: a.CompleteFolder,
	}
	f := cmd.Flags()
	f.BoolVarP(&l.long, "long", "l", false, "show more of each")
	f.BoolVarP(&l.below, "recursive", "R", false, "with FOLDER: all that is below")
	f.StringVar(&l.search, "search", "", "only names that contain this `text`")
	f.BoolVar(&l.mine, "mine", false, "only folders of your own")
	f.BoolVar(&l.shared, "shared", false, "only folders that users share with you")
	f.BoolVar(&l.others, "others", false, "only users' folders that you see by your role")
	f.StringVar(&l.project, "project", "", "only folders of a project")
	f.StringVar(&l.owner, "owner", "", "only folders of a user, by e-mail, username or id")
	cli.OptionalFlag(cmd, &l.mode, "usage-mode", "only folders `for`: general, data or model", cli.Choice(usageModes...))
	return cmd
}

// kind returns the kind of folders that the flags select.
func (l listing) kind() (kind client.Enum, err error) {
	n := cli.CountSet(l.project, l.owner)
	for name, on := range map[client.Enum]bool{"MINE": l.mine, "SHARED": l.shared, "OTHERS": l.others} {
		if on {
			kind = name
			n++
		}
	}
	if n > 1 {
		return "", cli.Usagef("name one of --mine, --shared, --others, --project and --owner")
	}
	return kind, nil
}

func listFolders(ctx context.Context, a *cli.App, l listing) error {
	kind, err := l.kind()
	if err != nil {
		return err
	}
	if l.below {
		return cli.Usagef("--recursive: name the folder")
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	filter := client.FolderFilter{Search: l.search, Kind: kind}
	if l.mode != nil {
		filter.UsageMode = *l.mode
	}
	if l.project != "" {
		if filter.Project, err = cli.FindProjectID(ctx, c, l.project); err != nil {
			return err
		}
	}
	if l.owner != "" {
		if filter.Owner, err = cli.FindUserID(ctx, c, l.owner); err != nil {
			return err
		}
	}
	list, err := c.Folders(ctx, filter)
	if err != nil {
		return err
	}
	return a.Table(list, func() *output.Table {
		if l.long {
			return longFolderTable(a, list)
		}
		return folderTable(a, list...)
	})
}

func folderTable(a *cli.App, list ...client.Folder) *output.Table {
	t := output.NewTable("NAME", "OWNER", "VOLUME", "SIZE", "MOUNTED BY", "AGE", "ID").Spare("ID", "VOLUME")
	for _, f := range list {
		t.Row(f.Name, ownerText(f), f.QuotaScope.Volume.Name, cli.Amount(f.UsedBytes, output.Bytes), cli.Names(f.MountedBy),
			output.Age(a.Now(), f.CreatedAt), f.ID)
	}
	return t
}

func longFolderTable(a *cli.App, list []client.Folder) *output.Table {
	t := output.NewTable("NAME", "OF", "OWNER", "STATUS", "FOR", "MEMBERS MAY", "VOLUME", "SIZE", "FILES", "LAST USED", "MOUNTED BY", "AGE", "ID").
		Spare("ID", "MEMBERS MAY", "AGE")
	for _, f := range list {
		used, may := "", ""
		if f.LastUsedAt != nil {
			used = output.Age(a.Now(), *f.LastUsedAt)
		}
		if f.Project != nil {
			may = strings.ReplaceAll(f.Permission.String(), "_", "-")
		}
		t.Row(f.Name, f.Kind, ownerText(f), f.Status, f.UsageMode, may, f.QuotaScope.Volume.Name,
			cli.Amount(f.UsedBytes, output.Bytes), cli.Amount(f.FileCount, cli.Decimal), used, cli.Names(f.MountedBy), output.Age(a.Now(), f.CreatedAt), f.ID)
	}
	return t
}

func ownerText(f client.Folder) string {
	if f.Project == nil && f.Owner != nil {
		return f.Owner.Email
	}
	return cli.HolderText(nil, f.Project, nil, "")
}

func listFiles(ctx context.Context, a *cli.App, text string, l listing) error {
	if l.mine || l.shared || l.others || l.mode != nil || cli.CountSet(l.project, l.owner) > 0 {
		return cli.Usagef("--mine, --shared, --others, --project, --owner and --usage-mode are of a list of folders, not of files")
	}
	if l.below && l.search != "" {
		return cli.Usagef("--recursive: --search looks at all below by itself")
	}
	c, f, dir, err := a.FindPlace(ctx, text)
	if err != nil {
		return err
	}
	var list []client.File
	switch {
	case l.search != "":
		list, err = c.Search(ctx, f.ID, dir, l.search)
	case l.below:
		list, err = c.Tree(ctx, f.ID, dir, 4)
	default:
		list, err = c.Files(ctx, f.ID, dir)
	}
	if err != nil {
		return err
	}
	return a.Table(list, func() *output.Table { return fileTable(list, l.long, l.below || l.search != "") })
}

// fileTable lists files, by their paths if they are in several directories. The long form has exact
// sizes and times.
func fileTable(list []client.File, long, paths bool) *output.Table {
	t := output.NewTable("NAME", "TYPE", "SIZE", "CHANGED")
	layout, show := "2006-01-02 15:04:05", output.Bytes
	if long {
		layout, show = "2006-01-02T15:04:05.000Z07:00", cli.Decimal
	}
	for _, f := range list {
		name, size := f.Name, ""
		if paths {
			name = f.Path
		}
		if f.Type == "FILE" {
			size = show(f.Size)
		}
		t.Row(name, f.Type, size, f.ModifiedAt.Local().Format(layout))
	}
	return t
}
