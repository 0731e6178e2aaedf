package main

import (
	"context"

	"github.com/berthhq/berth/internal/client"
	"github.com/spf13/cobra"
)

// usageModes are what a folder may be for.
var usageModes = []string{"general", "data", "model"}

func (a *app) folderSettings() *cobra.Command {
	var name, mode, permission *string
	cmd := a.verb("settings FOLDER", "Change the mode of use of a folder and the permission of its project's members", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			var in client.UpdateFolderInput
			for flag, field := range map[**string]*string{&name: &in.Name, &mode: &in.UsageMode, &permission: &in.Permission} {
				if *flag != nil {
					*field = **flag
				}
			}
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
	givenText(cmd, &name, "name", "another name")
	given(cmd, &mode, "usage-mode", "`mode` of use: general, data or model", choice(usageModes...))
	given(cmd, &permission, "member-permission", "`permission` of its project's members: read-only, read-write or read-write-delete", choice(folderPermissions...))
	sets(cmd, "member-permission", "permission")
	return cmd
}
