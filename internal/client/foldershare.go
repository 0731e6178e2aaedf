package client

import (
	"context"
	"time"
)

// FolderShare is what a folder is shared with one person for.
type FolderShare struct {
	ID           string     `json:"id"`
	CreatedAt    time.Time  `json:"createdAt"`
	Email        string     `json:"email"`
	Permission   string     `json:"permission"`
	Status       string     `json:"status"`
	Vfolder      *Ref       `json:"vfolder"`
	VfolderName  string     `json:"vfolderName"`
	InviterEmail *string    `json:"inviterEmail"`
	AnsweredAt   *time.Time `json:"answeredAt"`
}

const folderShareFields = `fragment folderShareFields on VfolderShare {
  id createdAt email permission status vfolder { id name } vfolderName inviterEmail answeredAt
}`

// FolderSharing is how a folder is shared.
type FolderSharing struct {
	Shares  []FolderShare `json:"shares"`
	MyShare *FolderShare  `json:"myShare"`
}

var folderShares = define[struct {
	Node *FolderSharing `json:"node"`
}](`query VfolderShares($id: ID!) {
  node(id: $id) { ... on Vfolder { shares { ...folderShareFields } myShare { ...folderShareFields } } }
}`, folderShareFields)

// FolderSharing tells whom a folder is shared with, for who may share it, and how it
// is shared with the viewer.
func (c *Client) FolderSharing(ctx context.Context, folder string) (*FolderSharing, error) {
	out, err := folderShares.run(ctx, c, vars{"id": folder})
	if err == nil && out.Node == nil {
		err = notFound("folder", folder)
	}
	return out.Node, err
}

var myFolderShares = define[struct {
	Shares connection[FolderShare] `json:"vfolderShares"`
}](`query MyVfolderShares($first: Int, $after: Cursor, $where: VfolderShareWhereInput) {
  vfolderShares(first: $first, after: $after, where: $where, mine: true, orderBy: [{ field: CREATED_AT }]) {
    edges { node { ...folderShareFields } } pageInfo { hasNextPage endCursor }
  }
}`, folderShareFields)

// FolderInvitations lists the invitations to the viewer that they have not answered.
func (c *Client) FolderInvitations(ctx context.Context) ([]FolderShare, error) {
	return collect(0, vars{"where": vars{"status": "pending"}}, func(v vars) (connection[FolderShare], error) {
		out, err := myFolderShares.run(ctx, c, v)
		return out.Shares, err
	})
}

// ShareResult is how it went for one of the people: one of Share and Error is there.
type ShareResult struct {
	Email string       `json:"email"`
	Share *FolderShare `json:"share"`
	Error *string      `json:"error"`
}

var shareFolder = define[payload[struct {
	Results []ShareResult `json:"results"`
}]](`mutation ShareVfolder($input: ShareVfolderInput!) {
  payload: shareVfolder(input: $input) { results { email error share { ...folderShareFields } } }
}`, folderShareFields)

// ShareFolder invites up to 50 people by e-mail.
func (c *Client) ShareFolder(ctx context.Context, folder string, emails []string, permission string) ([]ShareResult, error) {
	out, err := change(ctx, c, shareFolder, vars{"id": folder, "emails": emails, "permission": permission})
	return out.Results, err
}

type folderSharePayload = payload[struct {
	Share FolderShare `json:"share"`
}]

var updateFolderShare = define[folderSharePayload](`mutation UpdateVfolderShare($input: UpdateVfolderShareInput!) {
  payload: updateVfolderShare(input: $input) { share { ...folderShareFields } }
}`, folderShareFields)

// UpdateFolderShare changes what a share is for.
func (c *Client) UpdateFolderShare(ctx context.Context, share, permission string) (*FolderShare, error) {
	out, err := change(ctx, c, updateFolderShare, vars{"id": share, "permission": permission})
	return &out.Share, err
}

var removeFolderShare = define[folderSharePayload](`mutation RemoveVfolderShare($input: RemoveVfolderShareInput!) {
  payload: removeVfolderShare(input: $input) { share { ...folderShareFields } }
}`, folderShareFields)

// RemoveFolderShare withdraws a share, or leaves the folder when it is one's own.
func (c *Client) RemoveFolderShare(ctx context.Context, share string) (*FolderShare, error) {
	out, err := change(ctx, c, removeFolderShare, idOf{share})
	return &out.Share, err
}

var acceptFolderShare = define[folderSharePayload](`mutation AcceptVfolderShare($input: AcceptVfolderShareInput!) {
  payload: acceptVfolderShare(input: $input) { share { ...folderShareFields } }
}`, folderShareFields)

// AcceptFolderShare takes an invitation.
func (c *Client) AcceptFolderShare(ctx context.Context, share string) (*FolderShare, error) {
	out, err := change(ctx, c, acceptFolderShare, idOf{share})
	return &out.Share, err
}

var declineFolderShare = define[folderSharePayload](`mutation DeclineVfolderShare($input: DeclineVfolderShareInput!) {
  payload: declineVfolderShare(input: $input) { share { ...folderShareFields } }
}`, folderShareFields)

// DeclineFolderShare refuses an invitation.
func (c *Client) DeclineFolderShare(ctx context.Context, share string) (*FolderShare, error) {
	out, err := change(ctx, c, declineFolderShare, idOf{share})
	return &out.Share, err
}
