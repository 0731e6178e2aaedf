// Package preset has the commands about presets of resources.
package preset

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth preset".
func Command(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("preset", "List presets, the named sizes of sessions", listCommand(a)), "presets")
}

func listCommand(a *cli.App) *cobra.Command {
	var on, project string
	cmd := a.List("List presets, and whether a session of each could start now, later or never", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := presets(ctx, c, on, project)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("NAME", "SLOTS", "SHM", "GROUP", "FITS", "WHY").Spare("SHM", "GROUP")
			for _, p := range list {
				t.Row(p.Name, output.Slots(p.Slots), shmText(p.Preset), presetGroup(p.Preset), fitText(p.Fit.State.String()), p.Fit.Reason)
			}
			return t
		})
	})
	cmd.Flags().StringVar(&on, "group", "", "also those of this resource group, and how all fit there")
	cmd.Flags().StringVar(&project, "project", "", "how they fit in this project (default: your only one)")
	return cmd
}

// presets returns the presets for all groups and those of a named one.
func presets(ctx context.Context, c *client.Client, on, project string) ([]client.FittingPreset, error) {
	group, err := cli.FindGroupID(ctx, c, on)
	if err != nil {
		return nil, err
	}
	in, err := cli.FindProjectID(ctx, c, project)
	if err != nil {
		return nil, err
	}
	return c.Presets(ctx, group, in)
}

// Find finds a preset by name or ID; a preset of the group takes precedence over one for all
// groups.
func Find(ctx context.Context, c *client.Client, ref, on string) (*client.Preset, error) {
	list, err := presets(ctx, c, on, "")
	if err != nil {
		return nil, err
	}
	var found *client.Preset
	for i := range list {
		p := &list[i].Preset
		if (p.ID == ref || p.Name == ref) && (found == nil || p.ResourceGroup != nil) {
			found = p
		}
	}
	if found == nil {
		return nil, cli.NotFound("preset", ref, "those of a resource group show with --group")
	}
	return found, nil
}

func fitText(state string) output.Cell {
	switch state {
	case "now":
		return output.Cell{Text: "now", Color: output.Green}
	case "never":
		return output.Cell{Text: "never", Color: output.Red}
	}
	return output.Cell{Text: cli.Sentence(state), Color: output.Yellow}
}

func presetGroup(p client.Preset) string {
	if p.ResourceGroup == nil {
		return "all"
	}
	return p.ResourceGroup.Name
}

func shmText(p client.Preset) string {
	if p.ShmBytes == 0 {
		return "default"
	}
	return output.Bytes(p.ShmBytes)
}

// AdminCommand returns the command "berth admin preset".
func AdminCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("preset", "Manage presets, the named sizes of sessions",
		listCommand(a), createCommand(a), updateCommand(a), deleteCommand(a)), "presets")
}

func presetTable(p client.Preset) *output.Table {
	t := output.NewTable("NAME", "SLOTS", "SHM", "GROUP", "DESCRIPTION")
	t.Row(p.Name, output.Slots(p.Slots), shmText(p), presetGroup(p), p.Description)
	return t
}

func createCommand(a *cli.App) *cobra.Command {
	var in client.CreateResourcePresetInput
	var change client.UpdateResourcePresetInput
	var on string
	cmd := a.Verb("create NAME", "Create a preset", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if change.Slots == nil {
			return cli.Usagef("say with --slots how large it is, for example --slots cpu=4,mem=8g")
		}
		in.Name, in.Slots, in.ShmBytes = args[0], change.Slots, change.ShmBytes
		if change.Description != nil {
			in.Description = *change.Description
		}
		if in.ResourceGroup, err = cli.FindGroupID(ctx, c, on); err != nil {
			return err
		}
		p, err := c.CreatePreset(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(p, func() *output.Table { return presetTable(*p) })
	})
	cmd.Example = "  berth admin preset create small --slots cpu=2,mem=4g\n  berth admin preset create gpu --slots cpu=4,mem=16g,cuda.device=1 --group gpu"
	presetFlags(cmd, &change)
	cmd.Flags().StringVar(&on, "group", "", "only on this resource group (default: on all)")
	return cmd
}

func presetFlags(cmd *cobra.Command, in *client.UpdateResourcePresetInput) {
	cli.ParsedFlag(cmd, &in.Slots, "slots", "`amounts`, such as cpu=4,mem=8g", cli.ParseAmounts)
	cli.OptionalFlag(cmd, &in.ShmBytes, "shm", "`size` of /dev/shm, such as 1g", cli.ParseSize)
	cli.OptionalText(cmd, &in.Description, "description", "its purpose, a `text`")
	cli.SetsField(cmd, "shm", "shmBytes")
}

func updateCommand(a *cli.App) *cobra.Command {
	var in client.UpdateResourcePresetInput
	var on string
	cmd := a.Verb("update PRESET", "Change a preset", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		p, err := Find(ctx, c, args[0], on)
		if err != nil {
			return err
		}
		in.ID = p.ID
		if p, err = c.UpdatePreset(ctx, in); err != nil {
			return err
		}
		return a.Table(p, func() *output.Table { return presetTable(*p) })
	})
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	presetFlags(cmd, &in)
	cmd.Flags().StringVar(&on, "group", "", "resource group that it is of (default: all)")
	return cmd
}

func deleteCommand(a *cli.App) *cobra.Command {
	var on string
	cmd := a.Verb("delete PRESET...", "Remove presets", cli.Args(1, -1), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Each(args, func(ref string) error {
			p, err := Find(ctx, c, ref, on)
			if err != nil {
				return err
			}
			return c.DeletePreset(ctx, p.ID)
		})
	})
	cmd.Flags().StringVar(&on, "group", "", "resource group that they are of (default: all)")
	return cli.Alias(cmd, "rm")
}
