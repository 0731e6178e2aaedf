package account

import (
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/config"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ContextCommand returns the command "berth context".
func ContextCommand(a *cli.App) *cobra.Command {
	return cli.Group("context", "Choose between servers you are logged in to", contextList(a), contextUse(a))
}

func contextList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the contexts",
		Args:    cli.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, f, err := a.Config()
			if err != nil {
				return err
			}
			type listed struct {
				config.Context
				Current bool `json:"current"`
			}
			all := []listed{}
			for _, c := range f.Contexts {
				all = append(all, listed{c, c.Name == f.Current})
			}
			return a.Table(all, func() *output.Table {
				t := output.NewTable("CURRENT", "NAME", "URL", "USER")
				for _, c := range all {
					mark := " "
					if c.Current {
						mark = "*"
					}
					t.Row(mark, c.Name, c.URL, c.User)
				}
				return t
			})
		},
	}
}

func contextUse(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Switch to another context",
		Args:  cli.Args(1, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			_, f, err := a.Config()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			var all []string
			for _, c := range f.Contexts {
				all = append(all, c.Name)
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			path, f, err := a.Config()
			if err != nil {
				return err
			}
			c, err := f.Get(args[0])
			if err != nil {
				return err
			}
			f.Current = c.Name
			return f.Save(path)
		},
	}
}
