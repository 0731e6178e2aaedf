package main

import (
	"context"

	"github.com/berthhq/berth/client"
	"github.com/spf13/cobra"
)

// usageModes are what a folder may be for.
var usageModes = []string{"general", "data", "model"}

func (a *app) folderSettings() *cobra.Command {
	var in client.UpdateVfolderInput
	cmd := a.verb("settings FOLDER", "Change the mode of use of a folder and the permission of its project's members", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := changes(in); err != nil {
				return err
			}
			f, err := findFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.ID = f.ID
			if f, err = c.UpdateFolder(ctx, in); err != nil {
				return err
			}
			return a.folderDone(f)
		})
	cmd.ValidArgsFunction = a.completeFolder
	givenText(cmd, &in.Name, "name", "another name")
	parsed(cmd, &in.UsageMode, "usage-mode", "`mode` of use: general, data or model", choice(usageModes...))
	parsed(cmd, &in.Permission, "member-permission", "`permission` of its project's members: read-only, read-write or read-write-delete", choice(folderPermissions...))
	sets(cmd, "member-permission", "permission")
	return cmd
}
