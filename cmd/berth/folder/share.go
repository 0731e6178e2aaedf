package folder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// folderPermissions are the permissions that a share can give.
var folderPermissions = []string{"read_only", "read_write", "read_write_delete"}

func shareCommands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{shareCommand(a), sharesCommand(a), unshareCommand(a), invitationsCommand(a),
		answer(a, "accept", "Accept invitations to folders", (*client.Client).AcceptFolderShare),
		answer(a, "decline", "Decline invitations to folders", (*client.Client).DeclineFolderShare),
		leaveCommand(a)}
}

func shareTable(a *cli.App, list ...client.FolderShare) *output.Table {
	t := output.NewTable("E-MAIL", "MAY", "STATUS", "AGE", "ID").Spare("ID", "AGE")
	for _, s := range list {
		status := output.Cell{Text: s.Status.String(), Color: output.Yellow}
		if s.Status == "ACCEPTED" {
			status.Color = output.Green
		}
		t.Row(s.Email, cli.Sentence(s.Permission.String()), status, output.Age(a.Now(), s.CreatedAt), s.ID)
	}
	return t
}

func shareCommand(a *cli.App) *cobra.Command {
	permission := client.Enum("READ_ONLY")
	cmd := a.Verb("share FOLDER EMAIL...", "Share a folder with people, or change their permission", cli.Args(2, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f, err := cli.FindFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			sharing, err := c.FolderSharing(ctx, f.ID)
			if err != nil {
				return err
			}
			var fresh []string
			var results []client.ShareResult
			for _, email := range args[1:] {
				s := sharedWith(sharing.Shares, email)
				if s == nil {
					fresh = append(fresh, email)
					continue
				}
				changed, err := c.UpdateFolderShare(ctx, s.ID, permission)
				if err != nil {
					return fmt.Errorf("%s: %w", email, err)
				}
				results = append(results, client.ShareResult{Email: email, Share: changed})
			}
			for some := range slices.Chunk(fresh, maxInvited) {
				got, err := c.ShareFolder(ctx, f.ID, some, permission)
				if err != nil {
					return err
				}
				results = append(results, got...)
			}
			return shared(a, results)
		})
	cmd.Long = `Share a folder with people, or change their permission if it is already shared.
For a folder of your own they get an invitation, listed by berth folder
invitations; you do not learn whether an address has an account. For a folder of
a project, the members get this permission at once, in place of that of all
members.`
	cmd.Example = "  berth folder share data kim@example.org lee@example.org --permission read-write"
	cmd.ValidArgsFunction = a.CompleteFolder
	cli.ParsedFlag(cmd, &permission, "permission", "`permission`: read-only, read-write or read-write-delete (default read-only)", cli.Choice(folderPermissions...))
	return cmd
}

// maxInvited is the most people that the server accepts in one invitation.
const maxInvited = 50

// shared prints the users with whom the folder was shared, and returns an error if one failed.
func shared(a *cli.App, results []client.ShareResult) error {
	var done []client.FolderShare
	var failed []string
	for _, r := range results {
		if r.Share != nil {
			done = append(done, *r.Share)
		} else if r.Error != nil {
			failed = append(failed, r.Email+": "+*r.Error)
		}
	}
	if err := a.Table(results, func() *output.Table { return shareTable(a, done...) }); err != nil || len(failed) == 0 {
		return err
	}
	return fmt.Errorf("not shared with %s: %w", strings.Join(failed, "; "), errdefs.ErrInvalidArgument)
}

func sharedWith(list []client.FolderShare, email string) *client.FolderShare {
	for _, s := range list {
		if strings.EqualFold(s.Email, email) || s.ID == email {
			return &s
		}
	}
	return nil
}

func sharesCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("shares FOLDER", "List the shares of a folder, including invitations", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f, err := cli.FindFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			sharing, err := c.FolderSharing(ctx, f.ID)
			if err != nil {
				return err
			}
			return a.Table(sharing.Shares, func() *output.Table { return shareTable(a, sharing.Shares...) })
		})
	cmd.ValidArgsFunction = a.CompleteFolder
	return cmd
}

func unshareCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("unshare FOLDER EMAIL...", "Stop sharing a folder with people, or revoke invitations", cli.Args(2, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f, err := cli.FindFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			sharing, err := c.FolderSharing(ctx, f.ID)
			if err != nil {
				return err
			}
			return a.Each(args[1:], func(email string) error {
				s := sharedWith(sharing.Shares, email)
				if s == nil {
					return fmt.Errorf("%s is not shared with this user: %w", f.Name, errdefs.ErrNotFound)
				}
				_, err := c.RemoveFolderShare(ctx, s.ID)
				return err
			})
		})
	cmd.Long = `Stop sharing a folder with people, or revoke invitations. The folder is unmounted
from their running sessions.`
	cmd.ValidArgsFunction = a.CompleteFolder
	return cmd
}

func invitationsCommand(a *cli.App) *cobra.Command {
	return a.Verb("invitations", "List invitations to folders that you have not answered", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.FolderInvitations(ctx)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table {
				t := output.NewTable("FOLDER", "OF", "MAY", "AGE", "ID").Spare("AGE")
				for _, s := range list {
					of := "-"
					if s.InviterEmail != nil {
						of = *s.InviterEmail
					}
					t.Row(s.VfolderName, of, cli.Sentence(s.Permission.String()), output.Age(a.Now(), s.CreatedAt), s.ID)
				}
				return t
			})
		})
}

// answer returns a command that answers invitations, by ID or by the folder's name.
func answer(a *cli.App, name, short string, do func(*client.Client, context.Context, string) (*client.FolderShare, error)) *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		list, err := c.FolderInvitations(ctx)
		if err != nil {
			return "", err
		}
		s, err := invitation(list, ref)
		if err != nil {
			return "", err
		}
		return s.ID, nil
	}
	return a.OnEach(name+" ID|FOLDER", short, find, func(ctx context.Context, c *client.Client, id string) error {
		_, err := do(c, ctx, id)
		return err
	})
}

// invitation finds an invitation by its ID or the folder's name.
func invitation(list []client.FolderShare, ref string) (*client.FolderShare, error) {
	var found []client.FolderShare
	var which []string
	for _, s := range list {
		if s.ID != ref && s.VfolderName != ref {
			continue
		}
		found = append(found, s)
		of := "somebody"
		if s.InviterEmail != nil {
			of = *s.InviterEmail
		}
		which = append(which, s.ID+" of "+of)
	}
	switch len(found) {
	case 0:
		return nil, cli.NotFound("invitation", ref, "those that wait are in: berth folder invitations")
	case 1:
		return &found[0], nil
	}
	return nil, fmt.Errorf("there are several invitations to a folder %q; name one by its id: %s: %w",
		ref, strings.Join(which, ", "), errdefs.ErrFailedPrecondition)
}

func leaveCommand(a *cli.App) *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		filter := client.FolderFilter{Name: ref}
		if cli.IsID(ref) {
			filter = client.FolderFilter{ID: ref}
		}
		all, err := c.Folders(ctx, filter)
		if err != nil {
			return "", err
		}
		var mine []client.FolderShare // shares with the caller, not of the caller's own folder
		for _, f := range all {
			sharing, err := c.FolderSharing(ctx, f.ID)
			if err != nil {
				return "", err
			}
			if sharing.MyShare != nil {
				mine = append(mine, *sharing.MyShare)
			}
		}
		if len(all) > 0 && len(mine) == 0 {
			return "", fmt.Errorf("the folder is not shared with you: %w", errdefs.ErrFailedPrecondition)
		}
		s, err := cli.One(ctx, c, "shared folder", ref, mine, nil, func(s client.FolderShare) (id, owner string) {
			if s.Vfolder != nil {
				id = s.Vfolder.ID
			}
			return id, ""
		})
		if err != nil {
			return "", err
		}
		return s.ID, nil
	}
	cmd := a.OnEach("leave FOLDER", "Leave folders that others share with you", find, func(ctx context.Context, c *client.Client, share string) error {
		_, err := c.RemoveFolderShare(ctx, share)
		return err
	})
	cmd.ValidArgsFunction = a.CompleteFolder
	return cmd
}
