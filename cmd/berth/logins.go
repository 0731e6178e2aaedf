package main

import (
	"context"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) loginsCommand() *cobra.Command {
	list := a.loginsList()
	cmd := group("logins", "List and revoke logins of browsers", list, a.loginsRevoke(), a.loginsHistory())
	cmd.Long = "List and revoke logins of browsers. Without a command it lists your own."
	cmd.RunE = list.RunE
	return cmd
}

func (a *app) loginsList() *cobra.Command {
	var user string
	cmd := a.list("List your logins, or a user's", func(ctx context.Context, c *client.Client, _ []string) error {
		owner, err := findUserID(ctx, c, user)
		if err != nil {
			return err
		}
		list, err := c.Logins(ctx, owner)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table {
			t := output.NewTable("ID", "FROM", "WITH", "LOGGED IN", "LAST SEEN", "ENDS").Spare("ENDS", "LOGGED IN")
			for _, l := range list {
				t.Row(l.ID, l.ClientAddress, l.UserAgent, a.ago(&l.CreatedAt), a.ago(&l.LastSeenAt), a.expiry(&l.ExpiresAt))
			}
			return t
		})
	})
	cmd.Flags().StringVar(&user, "user", "", "whose (default: yours)")
	return cmd
}

func (a *app) loginsRevoke() *cobra.Command {
	var user string
	var all bool
	cmd := a.verb("revoke [LOGIN...]", "Revoke logins by ID; their open connections close", count(0, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if all == (len(args) > 0) {
				return usagef("name logins by their ids, or use --all")
			}
			if all {
				owner, err := findUserID(ctx, c, user)
				if err != nil {
					return err
				}
				list, err := c.Logins(ctx, owner)
				if err != nil {
					return err
				}
				for _, l := range list {
					args = append(args, l.ID)
				}
			}
			return a.each(args, func(ref string) error { return c.EndLogin(ctx, ref) })
		})
	cmd.Flags().BoolVar(&all, "all", false, "all logins of yours, or of --user")
	cmd.Flags().StringVar(&user, "user", "", "with --all: whose (default: yours)")
	return alias(cmd, "end")
}

func (a *app) loginsHistory() *cobra.Command {
	var period periodFlags
	var user string
	var f client.AttemptFilter
	cmd := a.verb("history", "List attempts to log in, newest first", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) (err error) {
		if f.From, f.To, err = period.read(a); err != nil {
			return err
		}
		if f.Email = user; isID(user) {
			u, err := findUser(ctx, c, user)
			if err != nil {
				return err
			}
			f.Email = u.Email
		}
		list, err := c.LoginAttempts(ctx, f)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table {
			t := output.NewTable("TIME", "E-MAIL", "RESULT", "BY", "FROM", "WITH").Spare("WITH", "BY")
			for _, l := range list {
				result := output.Cell{Text: sentence(l.Result)}
				if l.Result != "success" && l.Result != "logout" && l.Result != "code_needed" {
					result.Color = output.Yellow
				}
				t.Row(clock(l.At), l.Email, result, l.Method, l.ClientAddress, l.UserAgent)
			}
			return t
		})
	})
	flags := cmd.Flags()
	period.register(cmd)
	flags.StringVar(&user, "user", "", "only with this e-mail")
	flags.StringVar(&f.Result, "result", "", "only this result, for example wrong_credentials or throttled")
	flags.IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}
