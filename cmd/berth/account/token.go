package account

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/access"
)

// TokenCommand returns the command "berth token".
func TokenCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("token", "Manage your access tokens", tokenList(a), tokenCreate(a), tokenRevoke(a)), "tokens")
}

func tokenList(a *cli.App) *cobra.Command {
	return a.List("List your access tokens", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.AccessTokens(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("NAME", "TOKEN", "STATUS", "SCOPES", "PROJECT", "EXPIRES", "LAST USED", "ID").Spare("ID", "LAST USED", "TOKEN")
			for _, one := range list {
				t.Row(one.Name, one.Prefix+"…", credentialStatus(one.Status), strings.Join(cli.EnumTexts(one.Scopes), ", "), one.Project.Title(), expiry(a, one.ExpiresAt), a.Ago(one.LastUsedAt), one.ID)
			}
			return t
		})
	})
}

// credentialStatus returns the cell that shows whether a token or key is active.
func credentialStatus(status client.Enum) output.Cell {
	if status == "ACTIVE" {
		return output.Cell{Text: status.String(), Color: output.Green}
	}
	return output.Cell{Text: cli.Sentence(status.String()), Color: output.Yellow}
}

// expiry returns the cell that shows when something expires; nil is never.
func expiry(a *cli.App, at *time.Time) output.Cell {
	switch {
	case at == nil:
		return output.Cell{Text: "never"}
	case !at.After(a.Now()):
		return output.Cell{Text: "expired", Color: output.Red}
	}
	return output.Cell{Text: "in " + output.Duration(at.Sub(a.Now()))}
}

func tokenScopes() (all []string) {
	for _, s := range access.TokenScopes() {
		all = append(all, string(s))
	}
	return all
}

func tokenCreate(a *cli.App) *cobra.Command {
	var in client.CreateAccessTokenInput
	var project, expires string
	var own ownLogin
	cmd := a.Verb("create NAME", "Create an access token and print its secret", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in.Name = args[0]
		end, err := a.ParseEnd("--expires", expires)
		if err != nil {
			return err
		}
		in.ExpiresAt = end
		if in.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
			return err
		}
		return withOwnLogin(ctx, a, c, own, func(c *client.Client) error {
			made, err := c.CreateToken(ctx, in)
			if err != nil {
				return err
			}
			noteMaker(a, made.AccessToken.MakerID, made.AccessToken.ExpiresAt)
			return a.PrintSecret(made, made.Secret, "The token is shown this once.")
		})
	})
	cmd.Long = `Create an access token and print its secret, which is not shown again. Programs
send it as "Authorization: Bearer SECRET"; berth reads it from $BERTH_TOKEN.

A token that is created with the token of this context ends with that token: when
it expires or is revoked, as berth logout does. With --login it does not.`
	cmd.Example = "  export BERTH_TOKEN=$(berth token create ci --scope sessions,folders --project vision --expires 30d)"
	own.flags(cmd)
	flags := cmd.Flags()
	cli.ListFlag(cmd, &in.Scopes, "scope", "`scopes`, separated by commas: read, sessions, folders, account, admin (default: all of yours)", cli.Choices(tokenScopes()...))
	flags.StringVar(&project, "project", "", "the only project it reaches (default: all of yours)")
	flags.StringVar(&expires, "expires", "90d", "when it ends: a date, a time, a span such as 30d, or never")
	cli.SetsField(cmd, "scope", "scopes")
	cli.SetsField(cmd, "expires", "expiresAt")
	return cmd
}

func tokenRevoke(a *cli.App) *cobra.Command {
	return cli.Alias(a.Verb("revoke TOKEN...", "Revoke access tokens, by name, first characters or ID", cli.Args(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.AccessTokens(ctx)
			if err != nil {
				return err
			}
			return a.Each(args, func(ref string) error {
				one, err := cli.Pick(ctx, c, "token", ref, list, nil, func(t client.AccessToken) (id, name string) {
					if t.Prefix != "" && strings.HasPrefix(ref, t.Prefix) {
						return t.ID, ref
					}
					return t.ID, t.Name
				})
				if err != nil {
					return err
				}
				return c.RevokeAccessToken(ctx, one.ID)
			})
		}), "rm", "delete")
}
