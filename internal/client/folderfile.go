package client

import (
	"context"
	"path"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"
)

// File is one entry of a directory.
type File struct {
	Name       string    `json:"name"`
	Path       string    `json:"path"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modifiedAt"`
}

const fileFields = `fragment fileFields on File { name path type size modifiedAt }`

// filePage is a page of files; the cursor is nil on the last one.
type filePage struct {
	Files     []File  `json:"files"`
	EndCursor *string `json:"endCursor"`
}

// folderFiles answers a question about the files of one folder.
type folderFiles struct {
	Node *struct {
		Page filePage `json:"page"`
	} `json:"node"`
}

var listFiles = define[folderFiles](`query Files($id: ID!, $path: String, $after: String) {
  node(id: $id) { ... on Vfolder {
    page: files(path: $path, first: 1000, after: $after) { files { ...fileFields } endCursor }
  } }
}`, fileFields)

var searchFiles = define[folderFiles](`query SearchFiles($id: ID!, $path: String, $text: String!, $after: String) {
  node(id: $id) { ... on Vfolder {
    page: search(path: $path, text: $text, first: 100, after: $after) { files { ...fileFields } endCursor }
  } }
}`, fileFields)

// Files lists one directory of a folder; path "" is its top.
func (c *Client) Files(ctx context.Context, folder, path string) ([]File, error) {
	v := vars{"id": folder}
	put(v, "path", path)
	return c.filePages(ctx, listFiles, v)
}

// Search finds files and directories of a folder, below a directory, whose names hold
// a text, in whatever case.
func (c *Client) Search(ctx context.Context, folder, dir, text string) ([]File, error) {
	v := vars{"id": folder, "text": text}
	put(v, "path", dir)
	return c.filePages(ctx, searchFiles, v)
}

// filePages asks for one page after the other.
func (c *Client) filePages(ctx context.Context, ask operation[folderFiles], v vars) ([]File, error) {
	all := []File{}
	for {
		out, err := ask.run(ctx, c, v)
		if err != nil {
			return nil, err
		}
		if out.Node == nil {
			return nil, notFound("folder", v["id"].(string))
		}
		all = append(all, out.Node.Page.Files...)
		if out.Node.Page.EndCursor == nil {
			return all, nil
		}
		v["after"] = *out.Node.Page.EndCursor
	}
}

// Tree lists all that is in a directory of a folder and below it, each directory
// before what is in it; parallel is how many are asked for at once.
func (c *Client) Tree(ctx context.Context, folder, dir string, parallel int) ([]File, error) {
	all, level := []File{}, []string{dir}
	for len(level) > 0 {
		lists := make([][]File, len(level))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for i, d := range level {
			g.Go(func() (err error) {
				lists[i], err = c.Files(gctx, folder, d)
				if errdefs.IsNotFound(err) && d != dir { // gone since it was listed
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
				if f.Type == "directory" {
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

// FileResult is what came of one path; Error is nil when all went well.
type FileResult struct {
	Path  string  `json:"path"`
	Error *string `json:"error"`
}

type filesPayload struct {
	Payload struct {
		Results []FileResult `json:"results"`
	} `json:"payload"`
}

var makeDirectories = define[filesPayload](`mutation MakeDirectories($input: MakeDirectoriesInput!) {
  payload: makeDirectories(input: $input) { results { path error } }
}`)

// MakeDirectories makes up to 1000 directories with their parents.
func (c *Client) MakeDirectories(ctx context.Context, folder string, paths []string) ([]FileResult, error) {
	out, err := makeDirectories.run(ctx, c, vars{"input": vars{"vfolder": folder, "paths": paths}})
	return out.Payload.Results, err
}

// MoveItem is a path in a folder and its new one.
type MoveItem struct {
	From string `json:"from"`
	To   string `json:"to"`
}

var moveFiles = define[filesPayload](`mutation MoveFiles($input: MoveFilesInput!) {
  payload: moveFiles(input: $input) { results { path error } }
}`)

// MoveFiles moves or renames files and directories within a folder, or to another one
// of the same volume.
func (c *Client) MoveFiles(ctx context.Context, folder, to string, items []MoveItem, overwrite bool) ([]FileResult, error) {
	out, err := moveFiles.run(ctx, c, vars{"input": vars{"vfolder": folder, "toVfolder": to, "items": items, "overwrite": overwrite}})
	return out.Payload.Results, err
}

var deleteFiles = define[filesPayload](`mutation DeleteFiles($input: DeleteFilesInput!) {
  payload: deleteFiles(input: $input) { results { path error } }
}`)

// DeleteFiles deletes files and whole directories.
func (c *Client) DeleteFiles(ctx context.Context, folder string, paths []string) ([]FileResult, error) {
	out, err := deleteFiles.run(ctx, c, vars{"input": vars{"vfolder": folder, "paths": paths, "recursive": true}})
	return out.Payload.Results, err
}

// UploadTarget is where and with which ticket one file goes.
type UploadTarget struct {
	Path      string    `json:"path"`
	URL       string    `json:"url"`
	Ticket    string    `json:"ticket"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// UploadFile announces a file.
type UploadFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

var createUpload = define[struct {
	CreateUpload struct {
		Uploads []UploadTarget `json:"uploads"`
	} `json:"createUpload"`
}](`mutation CreateUpload($input: CreateUploadInput!) {
  createUpload(input: $input) { uploads { path url ticket expiresAt } }
}`)

// CreateUpload asks for tickets for up to 1000 files.
func (c *Client) CreateUpload(ctx context.Context, folder string, files []UploadFile) ([]UploadTarget, error) {
	out, err := createUpload.run(ctx, c, vars{"input": vars{"vfolder": folder, "files": files}})
	return out.CreateUpload.Uploads, err
}

var createDownload = define[struct {
	CreateDownload struct {
		URL       string    `json:"url"`
		ExpiresAt time.Time `json:"expiresAt"`
	} `json:"createDownload"`
}](`mutation CreateDownload($input: CreateDownloadInput!) {
  createDownload(input: $input) { url expiresAt }
}`)
