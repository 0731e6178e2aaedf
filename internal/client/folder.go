package client

import (
	"context"
	"path"
	"time"
)

// Folder is a virtual folder.
type Folder struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Status     string     `json:"status"`
	CreatedAt  time.Time  `json:"createdAt"`
	DeletedAt  *time.Time `json:"deletedAt"`
	Owner      *UserRef   `json:"owner"`
	Project    *Ref       `json:"project"`
	QuotaScope struct {
		LimitBytes *int64 `json:"limitBytes"`
		UsedBytes  *int64 `json:"usedBytes"`
		Volume     Ref    `json:"volume"`
	} `json:"quotaScope"`
	MountedBy []Ref `json:"mountedBy"`
}

const folderFields = `fragment folderFields on Vfolder {
  id name status createdAt deletedAt owner { id email } project { id name }
  quotaScope { limitBytes usedBytes volume { id name } } mountedBy { id name }
}`

var listFolders = define[struct {
	Vfolders connection[Folder] `json:"vfolders"`
}](`query Vfolders($first: Int, $after: Cursor, $where: VfolderWhereInput) {
  vfolders(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...folderFields } } pageInfo { hasNextPage endCursor }
  }
}`, folderFields)

// FolderFilter narrows a list of folders; zero values do not.
type FolderFilter struct{ ID, Name string }

// Folders lists folders in sight that are not deleted.
func (c *Client) Folders(ctx context.Context, f FolderFilter) ([]Folder, error) {
	where := nameIs(f.Name)
	if f.ID != "" {
		where["id"] = f.ID
	}
	return collect(0, vars{"where": where}, func(v vars) (connection[Folder], error) {
		out, err := listFolders.run(ctx, c, v)
		return out.Vfolders, err
	})
}

type folderPayload struct {
	Payload struct {
		Vfolder Folder `json:"vfolder"`
	} `json:"payload"`
}

var createFolder = define[folderPayload](`mutation CreateVfolder($input: CreateVfolderInput!) {
  payload: createVfolder(input: $input) { vfolder { ...folderFields } }
}`, folderFields)

// CreateFolder makes a folder of one's own or, with a project's id, of the
// project; volume "" is the first one.
func (c *Client) CreateFolder(ctx context.Context, name, project, volume string) (*Folder, error) {
	input := vars{"name": name}
	if project != "" {
		input["project"] = project
	}
	if volume != "" {
		input["volume"] = volume
	}
	out, err := createFolder.run(ctx, c, vars{"input": input})
	return &out.Payload.Vfolder, err
}

var updateFolder = define[folderPayload](`mutation UpdateVfolder($input: UpdateVfolderInput!) {
  payload: updateVfolder(input: $input) { vfolder { ...folderFields } }
}`, folderFields)

// RenameFolder gives the folder another name.
func (c *Client) RenameFolder(ctx context.Context, id, name string) (*Folder, error) {
	out, err := updateFolder.run(ctx, c, vars{"input": vars{"id": id, "name": name}})
	return &out.Payload.Vfolder, err
}

var trashFolder = define[folderPayload](`mutation TrashVfolder($input: TrashVfolderInput!) {
  payload: trashVfolder(input: $input) { vfolder { ...folderFields } }
}`, folderFields)

// TrashFolder puts the folder into the trash.
func (c *Client) TrashFolder(ctx context.Context, id string) (*Folder, error) {
	out, err := trashFolder.run(ctx, c, vars{"input": vars{"id": id}})
	return &out.Payload.Vfolder, err
}

var deleteFolder = define[folderPayload](`mutation DeleteVfolder($input: DeleteVfolderInput!) {
  payload: deleteVfolder(input: $input) { vfolder { ...folderFields } }
}`, folderFields)

// DeleteFolder deletes a folder in the trash and its data for ever.
func (c *Client) DeleteFolder(ctx context.Context, id string) (*Folder, error) {
	out, err := deleteFolder.run(ctx, c, vars{"input": vars{"id": id}})
	return &out.Payload.Vfolder, err
}

// File is one entry of a directory.
type File struct {
	Name       string    `json:"name"`
	Path       string    `json:"path"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modifiedAt"`
}

const fileFields = `fragment fileFields on File { name path type size modifiedAt }`

var listFiles = define[struct {
	Node *struct {
		Files struct {
			Files     []File  `json:"files"`
			EndCursor *string `json:"endCursor"`
		} `json:"files"`
	} `json:"node"`
}](`query Files($id: ID!, $path: String, $after: String) {
  node(id: $id) { ... on Vfolder {
    files(path: $path, first: 1000, after: $after) { files { ...fileFields } endCursor }
  } }
}`, fileFields)

// Files lists one directory of a folder; path "" is its top.
func (c *Client) Files(ctx context.Context, folder, path string) ([]File, error) {
	all := []File{}
	v := vars{"id": folder}
	if path != "" {
		v["path"] = path
	}
	for {
		out, err := listFiles.run(ctx, c, v)
		if err != nil {
			return nil, err
		}
		if out.Node == nil {
			return nil, notFound("folder", folder)
		}
		all = append(all, out.Node.Files.Files...)
		if out.Node.Files.EndCursor == nil {
			return all, nil
		}
		v["after"] = *out.Node.Files.EndCursor
	}
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

// MoveFiles moves or renames files and directories within a folder.
func (c *Client) MoveFiles(ctx context.Context, folder string, items []MoveItem, overwrite bool) ([]FileResult, error) {
	out, err := moveFiles.run(ctx, c, vars{"input": vars{"vfolder": folder, "items": items, "overwrite": overwrite}})
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
