// Package image has the commands about images and the registries that they come from.
package image

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth image".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("image", "Manage images and their registries",
		listCommand(a), startersCommand(a), registerCommand(a), scanCommand(a), reportCommand(a),
		buildCommand(a), buildsCommand(a), cancelCommand(a), cacheCommand(a),
		describeCommand(a), historyCommand(a), attachmentsCommand(a), updateCommand(a), prepullCommand(a), keepCommand(a),
		rollbackCommand(a), renameCommand(a), forgetCommand(a), shareCommand(a), registryCommand(a))
	cmd.Long = `Manage images and their registries.

A cluster of "berthd up" registers the images in build/images at its start.
"berth image starters" lists the images that can be built in the source tree.`
	return cmd
}

func listCommand(a *cli.App) *cobra.Command {
	var own, all bool
	cmd := &cobra.Command{
		Use:     "ls [PART-OF-NAME]",
		Aliases: []string{"list"},
		Short:   "List images",
		Args:    cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			if own {
				list, err := mine(cmd.Context(), c)
				if err != nil {
					return err
				}
				return a.Table(list, func() *output.Table { return ownTable(a, list...) })
			}
			list, err := c.Images(cmd.Context(), cli.First(args))
			if err != nil {
				return err
			}
			if !all {
				list = slices.DeleteFunc(list, func(i client.Image) bool { return i.Status == "GONE" })
			}
			return a.Table(list, func() *output.Table { return imageTable(list...) })
		},
	}
	cmd.Flags().BoolVar(&own, "mine", false, "only those that you made of sessions")
	cmd.Flags().BoolVar(&all, "all", false, "also those that were deleted or that their registry no longer has")
	return cmd
}

func imageTable(list ...client.Image) *output.Table {
	t := output.NewTable("NAME", "ARCHITECTURE", "SIZE", "MINIMUM", "STATUS", "REGISTRY", "REFERENCE").Spare("MINIMUM")
	for _, i := range list {
		registry := ""
		if i.Registry != nil {
			registry = i.Registry.Name
		}
		t.Row(i.Name, i.Architecture, output.Bytes(i.SizeBytes), output.Slots(i.MinimumSlots), imageStatus(i), registry, i.Reference)
	}
	return t
}

func imageStatus(i client.Image) string {
	status := i.Status.String()
	if i.Deprecated != "" {
		status += ", deprecated"
	}
	if i.Moved {
		status += ", tag moved"
	}
	return status
}

func startersCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "starters",
		Short: "List the starter images, and the commands that build them",
		Long: `List the images that the source tree of Berth has recipes for, and which of
them are registered. Run the command of one as root in the source tree.
"berthd up" registers it at its next start; for another cluster, copy it to a
registry of the cluster and scan that:

  skopeo copy oci:build/images/r docker://registry.example/r:4.5`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.StarterImages(cmd.Context())
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table {
				t := output.NewTable("IMAGE", "REGISTERED", "HAS", "COMMAND")
				for _, s := range list {
					registered := "no"
					if s.Image != nil {
						registered = "yes"
					}
					t.Row(s.Name+":"+s.Tag, registered, s.Description, s.Command)
				}
				return t
			})
		},
	}
}

func registerCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "register REFERENCE",
		Short:   "Register one image of a known registry",
		Example: "  berth image register registry.example.org/team/tool:1.2",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			i, err := c.RegisterImage(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Table(i, func() *output.Table { return imageTable(*i) })
		},
	}
}

func forgetCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rm IMAGE...",
		Aliases: []string{"forget"},
		Short:   "Delete images that you made of sessions, or unregister others, which their registry keeps",
		Args:    cli.Args(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.Each(args, func(ref string) error {
				i, err := cli.FindImage(cmd.Context(), c, ref)
				if err != nil {
					return err
				}
				return c.DeleteImage(cmd.Context(), i.ID)
			})
		},
	}
}
