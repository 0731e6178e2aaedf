package account

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// LoginsCommand returns the command "berth logins".
func LoginsCommand(a *cli.App) *cobra.Command {
	list := loginsList(a)
	cmd := cli.Group("logins", "List and revoke logins of browsers", list, loginsRevoke(a), loginsHistory(a))
	cmd.Long = "List and revoke logins of browsers. Without a command it lists your own."
	cmd.RunE = list.RunE
	return cmd
}

func loginsList(a *cli.App) *cobra.Command {
	var user string
	cmd := a.List("List your logins, or a user's", func(ctx context.Context, c *client.Client, _ []string) error {
		owner, err := cli.FindUserID(ctx, c, user)
		if err != nil {
			return err
		}
		list, err := c.Logins(ctx, owner)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("ID", "FROM", "WITH", "LOGGED IN", "LAST SEEN", "ENDS").Spare("ENDS", "LOGGED IN")
			for _, l := range list {
				t.Row(l.ID, l.ClientAddress, l.UserAgent, a.Ago(&l.CreatedAt), a.Ago(&l.LastSeenAt), expiry(a, &l.ExpiresAt))
			}
			return t
		})
	})
	cmd.Flags().StringVar(&user, "user", "", "whose (default: yours)")
	return cmd
}

func loginsRevoke(a *cli.App) *cobra.Command {
	var user string
	var all bool
	cmd := a.Verb("revoke [LOGIN...]", "Revoke logins by ID; their open connections close", cli.Args(0, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if all == (len(args) > 0) {
				return cli.Usagef("name logins by their ids, or use --all")
			}
			if all {
				owner, err := cli.FindUserID(ctx, c, user)
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
			return a.Each(args, func(ref string) error { return c.EndLogin(ctx, ref) })
		})
	cmd.Flags().BoolVar(&all, "all", false, "all logins of yours, or of --user")
	cmd.Flags().StringVar(&user, "user", "", "with --all: whose (default: yours)")
	return cli.Alias(cmd, "end")
}

func loginsHistory(a *cli.App) *cobra.Command {
	var period cli.PeriodFlags
	var user string
	var f client.AttemptFilter
	cmd := a.Verb("history", "List attempts to log in, newest first", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) (err error) {
		if f.From, f.To, err = period.Read(a); err != nil {
			return err
		}
		if f.Email = user; cli.IsID(user) {
			u, err := cli.FindUser(ctx, c, user)
			if err != nil {
				return err
			}
			f.Email = u.Email
		}
		list, err := c.LoginAttempts(ctx, f)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("TIME", "E-MAIL", "RESULT", "BY", "FROM", "WITH").Spare("WITH", "BY")
			for _, l := range list {
				result := output.Cell{Text: cli.Sentence(l.Result.String())}
				if l.Result != "SUCCESS" && l.Result != "LOGOUT" && l.Result != "CODE_NEEDED" {
					result.Color = output.Yellow
				}
				t.Row(cli.Clock(l.At), l.Email, result, l.Method, l.ClientAddress, l.UserAgent)
			}
			return t
		})
	})
	flags := cmd.Flags()
	period.Register(cmd)
	flags.StringVar(&user, "user", "", "only with this e-mail")
	cli.EnumFlag(cmd, &f.Result, "result", "only this `result`, for example wrong_credentials or throttled")
	flags.IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}
