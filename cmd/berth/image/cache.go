package image

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func cacheCommand(a *cli.App) *cobra.Command {
	return cli.Group("cache", "List and clear the caches of builds in the registry", &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the caches of projects whose builds you can see",
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.BuildCaches(cmd.Context())
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table {
				t := output.NewTable("PROJECT", "SIZE", "BUILDS", "USED")
				for _, one := range list {
					used := ""
					if one.UsedAt != nil {
						used = output.Age(a.Now(), *one.UsedAt)
					}
					t.Row(one.Project.Name, output.Bytes(one.Bytes), strconv.Itoa(one.Results), used)
				}
				return t
			})
		},
	}, &cobra.Command{
		Use:   "clear PROJECT",
		Short: "Remove the cache of a project, by name or id",
		Long: `Remove the results of a project's builds from the registry. The next builds run
the steps whose results no machine has. Images stay. You need to be able to
change the project.`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			project, err := cli.FindProjectID(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			results, bytes, err := c.DeleteBuildCache(cmd.Context(), project)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "Removed the results of %d builds; the next sweeps of the registry free %s.\n", results, output.Bytes(bytes))
			return err
		},
	})
}
