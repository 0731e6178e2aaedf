package folder

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// usageModes are the possible purposes of a folder.
var usageModes = []string{"general", "data", "model"}

func settingsCommand(a *cli.App) *cobra.Command {
	var in client.UpdateVfolderInput
	cmd := a.Verb("settings FOLDER", "Change the mode of use of a folder and the permission of its project's members", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := cli.RequireChanges(in); err != nil {
				return err
			}
			f, err := cli.FindFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.ID = f.ID
			if f, err = c.UpdateFolder(ctx, in); err != nil {
				return err
			}
			return folderDone(a, f)
		})
	cmd.ValidArgsFunction = a.CompleteFolder
	cli.OptionalText(cmd, &in.Name, "name", "another name")
	cli.ParsedFlag(cmd, &in.UsageMode, "usage-mode", "`mode` of use: general, data or model", cli.Choice(usageModes...))
	cli.ParsedFlag(cmd, &in.Permission, "member-permission", "`permission` of its project's members: read-only, read-write or read-write-delete", cli.Choice(folderPermissions...))
	cli.SetsField(cmd, "member-permission", "permission")
	return cmd
}
