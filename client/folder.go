package client

import (
	"context"
)

// FolderFilter selects folders; zero values select all.
type FolderFilter struct {
	ID, Name       string
	Search         string // part of the name, in upper or lower case
	Kind           Enum
	Owner, Project string // ids
	UsageMode      Enum
	Trash          bool // folders in the trash, instead of the others
}

// Folders lists the folders that can be used or are being cloned, or those in the trash.
func (c *Client) Folders(ctx context.Context, f FolderFilter) ([]Folder, error) {
	where := nameIs(f.Name)
	put(where, "id", f.ID)
	put(where, "nameContainsFold", f.Search)
	put(where, "kind", f.Kind)
	put(where, "ownerID", f.Owner)
	put(where, "projectID", f.Project)
	put(where, "usageMode", f.UsageMode)
	where["statusIn"] = []Enum{"READY", "CLONING"}
	if f.Trash {
		where["statusIn"] = []Enum{"TRASH"}
	}
	return collect(0, func(first *int, after string) (*queryVfoldersVfoldersVfolderConnection, error) {
		out, err := queryVfolders(ctx, c, first, after, where)
		return &out.Vfolders, err
	})
}

// CreateFolder creates a folder.
func (c *Client) CreateFolder(ctx context.Context, in CreateVfolderInput) (*Folder, error) {
	out, err := createVfolder(ctx, c, in)
	return &out.Payload.Vfolder, err
}

// UpdateFolder changes the settings of a folder.
func (c *Client) UpdateFolder(ctx context.Context, in UpdateVfolderInput) (*Folder, error) {
	out, err := updateVfolder(ctx, c, in)
	return &out.Payload.Vfolder, err
}

// TrashFolder puts the folder into the trash.
func (c *Client) TrashFolder(ctx context.Context, id string) (*Folder, error) {
	out, err := trashVfolder(ctx, c, TrashVfolderInput{ID: id})
	return &out.Payload.Vfolder, err
}

// RestoreFolder moves a folder out of the trash; name "" keeps its name.
func (c *Client) RestoreFolder(ctx context.Context, id, name string) (*Folder, error) {
	out, err := restoreVfolder(ctx, c, RestoreVfolderInput{ID: id, Name: name})
	return &out.Payload.Vfolder, err
}

// EmptyTrash permanently deletes the folders in the trash of the logged-in user, or of a
// project, and returns their number.
func (c *Client) EmptyTrash(ctx context.Context, project string) (int, error) {
	out, err := emptyTrash(ctx, c, EmptyTrashInput{Project: project})
	return out.Payload.Count, err
}

// DeleteFolder permanently deletes a folder in the trash with its data.
func (c *Client) DeleteFolder(ctx context.Context, id string) (*FolderTask, error) {
	out, err := deleteVfolder(ctx, c, DeleteVfolderInput{ID: id})
	return &out.Payload, err
}

// CloneFolder starts to copy a folder.
func (c *Client) CloneFolder(ctx context.Context, in CloneVfolderInput) (*FolderTask, error) {
	out, err := cloneVfolder(ctx, c, in)
	return &out.Payload, err
}

// HandOverFolder starts to transfer a folder to another user.
func (c *Client) HandOverFolder(ctx context.Context, id, user string) (*FolderTask, error) {
	out, err := handOverVfolder(ctx, c, HandOverVfolderInput{ID: id, User: user})
	return &out.Payload, err
}

// CopyFiles starts to copy files and directories to the folder to.
func (c *Client) CopyFiles(ctx context.Context, folder, to string, items []MoveFileItem, overwrite bool) (*FolderTask, error) {
	out, err := copyFiles(ctx, c, CopyFilesInput{Vfolder: folder, ToVfolder: to, Items: items, Overwrite: overwrite})
	return &out.Payload, err
}
