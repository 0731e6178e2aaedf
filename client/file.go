package client

import (
	"context"
	"path"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
)

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
