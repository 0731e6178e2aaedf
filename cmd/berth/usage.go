package main

import (
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) usageCommand() *cobra.Command {
	var from, to, user, project string
	cmd := &cobra.Command{
		Use:     "usage",
		Short:   "Sum the charges of the sessions that you can see",
		Example: "  berth usage --from 7d\n  berth usage --from 2026-01-01 --to 2026-02-01 --project vision",
		Args:    count(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var f client.UsageFilter
			var err error
			if f.From, err = a.when("--from", from); err != nil {
				return err
			}
			if f.To, err = a.when("--to", to); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			if user != "" {
				u, err := findUser(cmd.Context(), c, user)
				if err != nil {
					return err
				}
				f.User = u.ID
			}
			if project != "" {
				p, err := findProject(cmd.Context(), c, project)
				if err != nil {
					return err
				}
				f.Project = p.ID
			}
			list, err := c.Usage(cmd.Context(), f)
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table {
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
	return cmd
}

// when reads a point in time; "" is the zero time.
func (a *app) when(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation("2006-01-02", text, time.Local); err == nil {
		return t, nil
	}
	d, err := parseSpan(text)
	if err != nil {
		return time.Time{}, usagef("%s %s: not a date such as 2026-01-31, a time such as 2026-01-31T12:00:00Z or an age such as 7d", flag, text)
	}
	return a.now().Add(-d), nil
}
