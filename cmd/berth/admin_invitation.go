package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) invitationCommand() *cobra.Command {
	cmd := group("invitation", "Invite people to sign up, and approve users",
		a.invitationList(), a.invitationCreate(), a.invitationRevoke(), a.invitationWaiting(), a.invitationApprove())
	cmd.Long = `Invite people to sign up, and approve users. To set how people sign up in a
domain, run berth admin domain update DOMAIN --sign-up off|invitation|approval.`
	return alias(cmd, "invitations")
}

func (a *app) invitationList() *cobra.Command {
	return a.list("List the newest invitations", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Invitations(ctx)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return a.invitationTable(list...) })
	})
}

func (a *app) invitationTable(list ...client.Invitation) *output.Table {
	t := output.NewTable("E-MAIL", "DOMAIN", "PROJECT", "STATE", "INVITED", "ID").Spare("ID", "INVITED", "PROJECT")
	for _, i := range list {
		t.Row(i.Email, i.Domain.Name, i.Project.Title(), a.invitationState(i), a.ago(&i.CreatedAt), i.ID)
	}
	return t
}

func (a *app) invitationState(i client.Invitation) output.Cell {
	switch {
	case i.UsedAt != nil:
		return output.Cell{Text: "used", Color: output.Green}
	case i.RevokedAt != nil:
		return output.Cell{Text: "revoked", Color: output.Dim}
	case !i.ExpiresAt.After(a.now()):
		return output.Cell{Text: "expired", Color: output.Dim}
	}
	return output.Cell{Text: "open, ends in " + output.Duration(i.ExpiresAt.Sub(a.now()))}
}

func (a *app) invitationCreate() *cobra.Command {
	var in client.CreateInvitationInput
	var domain, project string
	cmd := a.verb("create EMAIL", "Invite a person and print the link to sign up", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			in.Email = args[0]
			if in.Domain, err = domainOrMine(ctx, c, domain); err != nil {
				return err
			}
			if in.Project, err = findProjectID(ctx, c, project); err != nil {
				return err
			}
			made, err := c.CreateInvitation(ctx, in)
			if err != nil {
				return err
			}
			link := made.Link
			if link != nil && strings.HasPrefix(*link, "/") {
				link = ptr(c.Base() + *link)
			}
			return a.secret(made, link, "Send this link to "+made.Invitation.Email+"; it is shown this once, and lets one person in.")
		})
	flags := cmd.Flags()
	flags.StringVar(&domain, "domain", "", "domain (default: yours)")
	flags.StringVar(&project, "project", "", "project to become a member of")
	given(cmd, &in.ExpiresInHours, "expires", "`time` until the invitation ends, in whole hours, such as 48h or 7d", func(text string) (int, error) {
		d, err := parseSpan(text)
		if err != nil || d < time.Hour || d%time.Hour != 0 {
			return 0, fmt.Errorf("not whole hours such as 48h or 7d")
		}
		return int(d / time.Hour), nil
	})
	sets(cmd, "expires", "expiresInHours")
	return cmd
}

func (a *app) invitationRevoke() *cobra.Command {
	return alias(a.verb("revoke INVITATION...", "Revoke invitations by e-mail or ID", count(1, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			list, err := c.Invitations(ctx)
			if err != nil {
				return err
			}
			return a.each(args, func(ref string) error {
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

// waits is the status of who signed up and may not log in yet.
const waits = "before_verification"

func (a *app) invitationWaiting() *cobra.Command {
	return a.verb("waiting", "List users who signed up and wait for approval", count(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Users(ctx, client.UserFilter{Status: waits})
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table {
			t := output.NewTable("E-MAIL", "NAME", "DOMAIN", "WAITS")
			for _, u := range list {
				t.Row(u.Email, u.FullName, u.Domain.Name, output.Age(a.now(), u.CreatedAt))
			}
			return t
		})
	})
}

func (a *app) invitationApprove() *cobra.Command {
	cmd := a.verb("approve USER...", "Approve users who signed up", count(1, -1), func(ctx context.Context, c *client.Client, args []string) error {
		return a.each(args, func(ref string) error {
			u, err := findUser(ctx, c, ref)
			if err != nil {
				return err
			}
			if u.Status != waits {
				return fmt.Errorf("waits for nothing: the user is %s: %w", sentence(u.Status), errdefs.ErrFailedPrecondition)
			}
			_, err = c.UpdateUser(ctx, client.UpdateUserInput{ID: u.ID, Status: "active"})
			return err
		})
	})
	cmd.Long = "Approve users who signed up: they can log in. To reject a user, run\nberth admin user update USER --status deleted."
	return cmd
}
