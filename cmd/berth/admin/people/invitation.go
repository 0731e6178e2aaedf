package people

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// InvitationCommand returns the command "berth admin invitation".
func InvitationCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("invitation", "Invite people to sign up, and approve users",
		invitationList(a), invitationCreate(a), invitationRevoke(a), invitationWaiting(a), invitationApprove(a))
	cmd.Long = `Invite people to sign up, and approve users. To set how people sign up in a
domain, run berth admin domain update DOMAIN --sign-up off|invitation|approval.`
	return cli.Alias(cmd, "invitations")
}

func invitationList(a *cli.App) *cobra.Command {
	return a.List("List invitations, newest first", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Invitations(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return invitationTable(a, list...) })
	})
}

func invitationTable(a *cli.App, list ...client.Invitation) *output.Table {
	t := output.NewTable("E-MAIL", "DOMAIN", "PROJECT", "STATE", "INVITED", "ID").Spare("ID", "INVITED", "PROJECT")
	for _, i := range list {
		t.Row(i.Email, i.Domain.Name, i.Project.Title(), invitationState(a, i), a.Ago(&i.CreatedAt), i.ID)
	}
	return t
}

func invitationState(a *cli.App, i client.Invitation) output.Cell {
	switch {
	case i.UsedAt != nil:
		return output.Cell{Text: "used", Color: output.Green}
	case i.RevokedAt != nil:
		return output.Cell{Text: "revoked", Color: output.Dim}
	case !i.ExpiresAt.After(a.Now()):
		return output.Cell{Text: "expired", Color: output.Dim}
	}
	return output.Cell{Text: "open, ends in " + output.Duration(i.ExpiresAt.Sub(a.Now()))}
}

func invitationCreate(a *cli.App) *cobra.Command {
	var in client.CreateInvitationInput
	var domain, project string
	cmd := a.Verb("create EMAIL", "Invite a person and print the link to sign up", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			in.Email = args[0]
			if in.Domain, err = cli.DomainOrMine(ctx, c, domain); err != nil {
				return err
			}
			if in.Project, err = cli.FindProjectID(ctx, c, project); err != nil {
				return err
			}
			made, err := c.CreateInvitation(ctx, in)
			if err != nil {
				return err
			}
			link := made.Link
			if link != nil && strings.HasPrefix(*link, "/") {
				link = cli.Ptr(c.Base() + *link)
			}
			return a.PrintSecret(made, link, "Send this link to "+made.Invitation.Email+"; it is shown this once, and lets one person in.")
		})
	flags := cmd.Flags()
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringVar(&project, "project", "", "project to become a member of")
	cli.OptionalFlag(cmd, &in.ExpiresInHours, "expires", "`time` until the invitation ends, in whole hours, such as 48h or 7d", func(text string) (int, error) {
		d, err := cli.ParseSpan(text)
		if err != nil || d < time.Hour || d%time.Hour != 0 {
			return 0, fmt.Errorf("not whole hours such as 48h or 7d")
		}
		return int(d / time.Hour), nil
	})
	cli.SetsField(cmd, "expires", "expiresInHours")
	return cmd
}

func invitationRevoke(a *cli.App) *cobra.Command {
	return cli.Alias(a.Verb("revoke INVITATION...", "Revoke invitations by e-mail or ID", cli.Args(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.Invitations(ctx)
			if err != nil {
				return err
			}
			return a.Each(args, func(ref string) error {
				found := 0
				for _, i := range list {
					open := i.UsedAt == nil && i.RevokedAt == nil
					if i.ID != ref && (i.Email != ref || !open) {
						continue
					}
					found++
					if err := c.RevokeInvitation(ctx, i.ID); err != nil {
						return err
					}
				}
				if found == 0 {
					return fmt.Errorf("no open invitation matches: %w", errdefs.ErrNotFound)
				}
				return nil
			})
		}), "rm")
}

// waits is the status of users who signed up and cannot log in yet.
const waits = "before_verification"

func invitationWaiting(a *cli.App) *cobra.Command {
	return a.Verb("waiting", "List users who signed up and wait for approval", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Users(ctx, client.UserFilter{Status: waits})
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("E-MAIL", "NAME", "DOMAIN", "WAITS")
			for _, u := range list {
				t.Row(u.Email, u.FullName, u.Domain.Name, output.Age(a.Now(), u.CreatedAt))
			}
			return t
		})
	})
}

func invitationApprove(a *cli.App) *cobra.Command {
	cmd := a.Verb("approve USER...", "Approve users who signed up", cli.Args(1, -1), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Each(args, func(ref string) error {
			u, err := cli.FindUser(ctx, c, ref)
			if err != nil {
				return err
			}
			if u.Status != waits {
				return fmt.Errorf("waits for nothing: the user is %s: %w", cli.Sentence(u.Status.String()), errdefs.ErrFailedPrecondition)
			}
			_, err = c.UpdateUser(ctx, client.UpdateUserInput{ID: u.ID, Status: "ACTIVE"})
			return err
		})
	})
	cmd.Long = "Approve users who signed up: they can log in. To reject a user, run\nberth admin user update USER --status deleted."
	return cmd
}
