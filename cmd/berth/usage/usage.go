// Package usage has the commands that show charges and limits.
package usage

import (
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth usage".
func Command(a *cli.App) *cobra.Command {
	var from, to, user, project string
	var by grouped
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Sum the charges of the sessions that you can see",
		Example: "  berth usage --from 7d\n  berth usage --from 2026-01-01 --to 2026-02-01 --project vision\n" +
			"  berth usage --by user,month --from 2026-01-01\n  berth usage --by project,slot,day --time-zone Asia/Seoul --csv > usage.csv",
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var f client.UsageFilter
			var err error
			if f.From, err = a.ParseTime("--from", from); err != nil {
				return err
			}
			if f.To, err = a.ParseTime("--to", to); err != nil {
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			if user != "" {
				u, err := cli.FindUser(cmd.Context(), c, user)
				if err != nil {
					return err
				}
				f.User = u.ID
			}
			if project != "" {
				p, err := cli.FindProject(cmd.Context(), c, project)
				if err != nil {
					return err
				}
				f.Project = p.ID
			}
			if by.wanted() {
				in, err := by.input(cmd.Context(), a, c, f)
				if err != nil {
					return err
				}
				rows, err := c.UsageReport(cmd.Context(), in)
				if err != nil {
					return err
				}
				return by.print(a, rows)
			}
			list, err := c.Usage(cmd.Context(), f)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table {
				t := output.NewTable("SLOT", "CHARGED", "UNIT", "SLOT-SECONDS")
				for _, u := range list {
					hours, unit := output.SlotHours(u.Slot, u.SlotSeconds)
					t.Row(u.Slot, hours, unit, u.SlotSeconds)
				}
				return t
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "begin: a date, an RFC 3339 time, or an age such as 12h or 7d")
	flags.StringVar(&to, "to", "", "end, likewise")
	flags.StringVar(&user, "user", "", "only this user's, by e-mail or id")
	flags.StringVar(&project, "project", "", "only this project's, by name or id")
	by.register(cmd)
	return cmd
}
