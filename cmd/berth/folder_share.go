package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

// folderPermissions are what a folder may be shared for.
var folderPermissions = []string{"read_only", "read_write", "read_write_delete"}

func (a *app) folderShareCommands() []*cobra.Command {
	return []*cobra.Command{a.folderShare(), a.folderShares(), a.folderUnshare(), a.folderInvitations(),
		a.answer("accept", "Accept invitations to folders", (*client.Client).AcceptFolderShare),
		a.answer("decline", "Decline invitations to folders", (*client.Client).DeclineFolderShare),
		a.folderLeave()}
}

func (a *app) shareTable(list ...client.FolderShare) *output.Table {
	t := output.NewTable("E-MAIL", "MAY", "STATUS", "AGE", "ID").Spare("ID", "AGE")
	for _, s := range list {
		status := output.Cell{Text: s.Status, Color: output.Yellow}
		if s.Status == "accepted" {
			status.Color = output.Green
		}
		t.Row(s.Email, sentence(s.Permission), status, output.Age(a.now(), s.CreatedAt), s.ID)
	}
	return t
}

func (a *app) folderShare() *cobra.Command {
	permission := "read_only"
	cmd := a.verb("share FOLDER EMAIL...", "Share a folder with people, or change their permission", count(2, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f, err := findFolder(ctx, c, args[0])
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
			return a.shared(results)
		})
	cmd.Long = `Share a folder with people, or change their permission if it is already shared.
For a folder of your own they get an invitation, listed by berth folder
invitations; you do not learn whether an address has an account. For a folder of
a project, the members get this permission at once, in place of that of all
members.`
	cmd.Example = "  berth folder share data kim@example.org lee@example.org --permission read-write"
	cmd.ValidArgsFunction = a.completeFolder
	cmd.Flags().Func("permission", "`permission`: read-only, read-write or read-write-delete (default read-only)", func(text string) (err error) {
		permission, err = choice(folderPermissions...)(text)
		return err
	})
	return cmd
}

// maxInvited is how many people the server invites at once.
const maxInvited = 50

// shared prints whom it went well for, and fails when it did not for someone.
func (a *app) shared(results []client.ShareResult) error {
	var done []client.FolderShare
	var failed []string
	for _, r := range results {
		if r.Share != nil {
			done = append(done, *r.Share)
		} else if r.Error != nil {
			failed = append(failed, r.Email+": "+*r.Error)
		}
	}
	if err := a.table(results, func() *output.Table { return a.shareTable(done...) }); err != nil || len(failed) == 0 {
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

func (a *app) folderShares() *cobra.Command {
	cmd := a.verb("shares FOLDER", "List the shares of a folder, including invitations", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f, err := findFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			sharing, err := c.FolderSharing(ctx, f.ID)
			if err != nil {
				return err
			}
			return a.table(sharing.Shares, func() *output.Table { return a.shareTable(sharing.Shares...) })
		})
	cmd.ValidArgsFunction = a.completeFolder
	return cmd
}

func (a *app) folderUnshare() *cobra.Command {
	cmd := a.verb("unshare FOLDER EMAIL...", "Stop sharing a folder with people, or revoke invitations", count(2, -1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f, err := findFolder(ctx, c, args[0])
			if err != nil {
				return err
			}
			sharing, err := c.FolderSharing(ctx, f.ID)
			if err != nil {
				return err
			}
			return a.each(args[1:], func(email string) error {
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
	cmd.ValidArgsFunction = a.completeFolder
	return cmd
}

func (a *app) folderInvitations() *cobra.Command {
	return a.verb("invitations", "List invitations to folders that you have not answered", count(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.FolderInvitations(ctx)
			if err != nil {
				return err
			}
			return a.table(list, func() *output.Table {
				t := output.NewTable("FOLDER", "OF", "MAY", "AGE", "ID").Spare("AGE")
				for _, s := range list {
					of := "-"
					if s.InviterEmail != nil {
						of = *s.InviterEmail
					}
					t.Row(s.VfolderName, of, sentence(s.Permission), output.Age(a.now(), s.CreatedAt), s.ID)
				}
				return t
			})
		})
}

// answer is a verb for invitations, by id or by the folder's name.
func (a *app) answer(name, short string, do func(*client.Client, context.Context, string) (*client.FolderShare, error)) *cobra.Command {
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
	return a.onEach(name+" ID|FOLDER", short, find, func(ctx context.Context, c *client.Client, id string) error {
		_, err := do(c, ctx, id)
		return err
	})
}

// invitation finds the one that is meant.
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
		return nil, notThere("invitation", ref, "those that wait are in: berth folder invitations")
	case 1:
		return &found[0], nil
	}
	return nil, fmt.Errorf("there are several invitations to a folder %q; name one by its id: %s: %w",
		ref, strings.Join(which, ", "), errdefs.ErrFailedPrecondition)
}

func (a *app) folderLeave() *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		filter := client.FolderFilter{Name: ref}
		if isID(ref) {
			filter = client.FolderFilter{ID: ref}
		}
		all, err := c.Folders(ctx, filter)
		if err != nil {
			return "", err
		}
		var mine []client.FolderShare // one's own folder of that name is not meant
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
		s, err := one(ctx, c, "shared folder", ref, mine, nil, func(s client.FolderShare) (id, owner string) {
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
	cmd := a.onEach("leave FOLDER", "Leave folders that others share with you", find, func(ctx context.Context, c *client.Client, share string) error {
		_, err := c.RemoveFolderShare(ctx, share)
		return err
	})
	cmd.ValidArgsFunction = a.completeFolder
	return cmd
}
