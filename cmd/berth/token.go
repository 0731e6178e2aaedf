package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/access"
	"github.com/spf13/cobra"
)

func (a *app) tokenCommand() *cobra.Command {
	return alias(group("token", "Manage your access tokens", a.tokenList(), a.tokenCreate(), a.tokenRevoke()), "tokens")
}

func (a *app) tokenList() *cobra.Command {
	return a.list("List your access tokens", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.AccessTokens(ctx)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table {
			t := output.NewTable("NAME", "TOKEN", "STATUS", "SCOPES", "PROJECT", "EXPIRES", "LAST USED", "ID").Spare("ID", "LAST USED", "TOKEN")
			for _, one := range list {
				t.Row(one.Name, one.Prefix+"…", credentialStatus(one.Status), strings.Join(one.Scopes, ", "), one.Project.Title(), a.expiry(one.ExpiresAt), a.ago(one.LastUsedAt), one.ID)
			}
			return t
		})
	})
}

// credentialStatus shows whether a token or key is taken.
func credentialStatus(status string) output.Cell {
	if status == "active" {
		return output.Cell{Text: status, Color: output.Green}
	}
	return output.Cell{Text: sentence(status), Color: output.Yellow}
}

// expiry tells when something ends; nil is never.
func (a *app) expiry(at *time.Time) output.Cell {
	switch {
	case at == nil:
		return output.Cell{Text: "never"}
	case !at.After(a.now()):
		return output.Cell{Text: "expired", Color: output.Red}
	}
	return output.Cell{Text: "in " + output.Duration(at.Sub(a.now()))}
}

// ago tells how long something is past; nil is never.
func (a *app) ago(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return output.Age(a.now(), *at) + " ago"
}

func tokenScopes() (all []string) {
	for _, s := range access.TokenScopes() {
		all = append(all, string(s))
	}
	return all
}

func (a *app) tokenCreate() *cobra.Command {
	var in client.CreateAccessTokenInput
	var project, expires string
	var own lasting
	cmd := a.verb("create NAME", "Create an access token and print its secret", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		in.Name = args[0]
		end, err := a.until("--expires", expires)
		if err != nil {
			return err
		}
		in.ExpiresAt = end
		if in.Project, err = findProjectID(ctx, c, project); err != nil {
			return err
		}
		return a.lasting(ctx, c, own, func(c *client.Client) error {
			made, err := c.CreateToken(ctx, in)
			if err != nil {
				return err
			}
			a.noteMaker(made.AccessToken.MakerID, made.AccessToken.ExpiresAt)
			return a.secret(made, made.Secret, "The token is shown this once.")
		})
	})
	cmd.Long = `Create an access token and print its secret, which is not shown again. Programs
send it as "Authorization: Bearer SECRET"; berth reads it from $BERTH_TOKEN.

A token that is created with the token of this context ends with that token: when
it expires or is revoked, as berth logout does. With --login it does not.`
	cmd.Example = "  export BERTH_TOKEN=$(berth token create ci --scope sessions,folders --project vision --expires 30d)"
	own.flags(cmd)
	flags := cmd.Flags()
	givenList(cmd, &in.Scopes, "scope", "`scopes`, separated by commas: read, sessions, folders, account, admin (default: all of yours)", choices(tokenScopes()...))
	flags.StringVar(&project, "project", "", "the only project it reaches (default: all of yours)")
	flags.StringVar(&expires, "expires", "90d", "when it ends: a date, a time, a span such as 30d, or never")
	sets(cmd, "scope", "scopes")
	sets(cmd, "expires", "expiresAt")
	return cmd
}

// until reads a point in time to come: a date, a time or a span; nil for never.
func (a *app) until(flag, text string) (*time.Time, error) {
	if text == "never" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02", text, time.Local)
	}
	if err != nil {
		var d time.Duration
		d, err = parseSpan(text)
		at = a.now().Add(d)
	}
	if err != nil {
		return nil, usagef("%s %s: not a date such as 2026-12-31, a time such as 2026-12-31T12:00:00Z, a span such as 30d, or never", flag, text)
	}
	if !at.After(a.now()) {
		return nil, usagef("%s %s: is past already", flag, text)
	}
	return &at, nil
}

// secret prints a result for programs, or for people the secret alone, with
// what there is to say about it on standard error.
func (a *app) secret(v any, secret *string, note string) error {
	return a.print().Print(v, func() error {
		if secret == nil {
			return nil
		}
		a.note("%s", note)
		_, err := fmt.Fprintln(a.out, output.Clean(*secret))
		return err
	})
}

func (a *app) tokenRevoke() *cobra.Command {
	return alias(a.verb("revoke TOKEN...", "Revoke access tokens, by name, first characters or ID", count(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.AccessTokens(ctx)
			if err != nil {
				return err
			}
			return a.each(args, func(ref string) error {
				one, err := pick(ctx, c, "token", ref, list, nil, func(t client.AccessToken) (id, name string) {
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
