package client

import (
	"context"
	"path"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
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

// Files lists one directory of a folder; path "" is its top.
func (c *Client) Files(ctx context.Context, folder, path string) ([]File, error) {
	return allFiles(folder, func(after string) (*filePage, error) {
		out, err := queryFiles(ctx, c, folder, path, after)
		if err != nil || out.Node == nil {
			return nil, err
		}
		return &out.Node.Page, nil
	})
}

// Search finds files and directories below a directory of a folder whose names contain a
// text, in upper or lower case.
func (c *Client) Search(ctx context.Context, folder, dir, text string) ([]File, error) {
	return allFiles(folder, func(after string) (*filePage, error) {
		out, err := querySearchFiles(ctx, c, folder, dir, text, after)
		if err != nil || out.Node == nil {
			return nil, err
		}
		return &out.Node.Page, nil
	})
}

// allFiles reads one page after the other; a nil page means that the folder does not exist.
func allFiles(folder string, read func(after string) (*filePage, error)) ([]File, error) {
	all := []File{}
	for after := ""; ; {
		page, err := read(after)
		if err != nil {
			return nil, err
		}
		if page == nil {
			return nil, notFound("folder", folder)
		}
		all = append(all, page.Files...)
		if page.EndCursor == nil {
			return all, nil
		}
		after = *page.EndCursor
	}
}

// Tree lists all entries below a directory of a folder, each directory before its entries.
// It reads up to parallel directories at once.
func (c *Client) Tree(ctx context.Context, folder, dir string, parallel int) ([]File, error) {
	all, level := []File{}, []string{dir}
	for len(level) > 0 {
		lists := make([][]File, len(level))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for i, d := range level {
			g.Go(func() (err error) {
				lists[i], err = c.Files(gctx, folder, d)
				if errdefs.IsNotFound(err) && d != dir { // deleted since it was listed
					return nil
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		level = nil
		for _, list := range lists {
			all = append(all, list...)
			for _, f := range list {
				if f.Type == "DIRECTORY" {
					level = append(level, f.Path)
				}
			}
		}
	}
	return all, nil
}

// Stat finds one file or directory of a folder.
func (c *Client) Stat(ctx context.Context, folder, name string) (*File, error) {
	dir := path.Dir(name)
	if dir == "." {
		dir = ""
	}
	all, err := c.Files(ctx, folder, dir)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.Name == path.Base(name) {
			return &f, nil
		}
	}
	return nil, notFound("file", name)
}

// CreateDirectories creates up to 1000 directories with their parents.
func (c *Client) CreateDirectories(ctx context.Context, folder string, paths []string) ([]FileResult, error) {
	out, err := createDirectories(ctx, c, CreateDirectoriesInput{Vfolder: folder, Paths: paths})
	return out.Payload.Results, err
}

// MoveFiles moves or renames files and directories within a folder, or to another one
// of the same volume.
func (c *Client) MoveFiles(ctx context.Context, folder, to string, items []MoveFileItem, overwrite bool) ([]FileResult, error) {
	out, err := moveFiles(ctx, c, MoveFilesInput{Vfolder: folder, ToVfolder: to, Items: items, Overwrite: overwrite})
	return out.Payload.Results, err
}

// DeleteFiles deletes files and whole directories.
func (c *Client) DeleteFiles(ctx context.Context, folder string, paths []string) ([]FileResult, error) {
	out, err := deleteFiles(ctx, c, DeleteFilesInput{Vfolder: folder, Paths: paths, Recursive: true})
	return out.Payload.Results, err
}

// CreateUpload asks for tickets for up to 1000 files.
func (c *Client) CreateUpload(ctx context.Context, folder string, files []UploadFileInput) ([]UploadTarget, error) {
	out, err := createUpload(ctx, c, CreateUploadInput{Vfolder: folder, Files: files})
	return out.CreateUpload.Uploads, err
}
