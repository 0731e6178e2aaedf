package client

import (
	"context"
)

// FolderSharing returns the shares of a folder, if the viewer can share it, and the share of
// the viewer.
func (c *Client) FolderSharing(ctx context.Context, folder string) (*FolderSharing, error) {
	out, err := queryVfolderShares(ctx, c, folder)
	if err == nil && out.Node == nil {
		err = notFound("folder", folder)
	}
	return out.Node, err
}

// FolderInvitations lists the invitations that the viewer has not answered.
func (c *Client) FolderInvitations(ctx context.Context) ([]FolderShare, error) {
	return collect(0, func(first *int, after string) (*queryMyVfolderSharesVfolderSharesVfolderShareConnection, error) {
		out, err := queryMyVfolderShares(ctx, c, first, after, Where{"status": "PENDING"})
		return &out.VfolderShares, err
	})
}

// ShareFolder invites up to 50 people by e-mail.
func (c *Client) ShareFolder(ctx context.Context, folder string, emails []string, permission Enum) ([]ShareResult, error) {
	out, err := shareVfolder(ctx, c, ShareVfolderInput{ID: folder, Emails: emails, Permission: permission})
	return out.Payload.Results, err
}

// UpdateFolderShare changes the permission of a share.
func (c *Client) UpdateFolderShare(ctx context.Context, share string, permission Enum) (*FolderShare, error) {
	out, err := updateVfolderShare(ctx, c, UpdateVfolderShareInput{ID: share, Permission: permission})
	return &out.Payload.Share, err
}

// RemoveFolderShare revokes a share, or leaves the folder if it is a share with the viewer.
func (c *Client) RemoveFolderShare(ctx context.Context, share string) (*FolderShare, error) {
	out, err := revokeVfolderShare(ctx, c, RevokeVfolderShareInput{ID: share})
	return &out.Payload.Share, err
}

// AcceptFolderShare accepts an invitation.
func (c *Client) AcceptFolderShare(ctx context.Context, share string) (*FolderShare, error) {
	out, err := acceptVfolderShare(ctx, c, AcceptVfolderShareInput{ID: share})
	return &out.Payload.Share, err
}

// DeclineFolderShare declines an invitation.
func (c *Client) DeclineFolderShare(ctx context.Context, share string) (*FolderShare, error) {
	out, err := declineVfolderShare(ctx, c, DeclineVfolderShareInput{ID: share})
	return &out.Payload.Share, err
}
