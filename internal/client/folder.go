package client

import (
	"context"
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
	UsedBytes *int64 `json:"usedBytes"` // nil: not measured yet
	FileCount *int64 `json:"fileCount"`
	MountedBy []Ref  `json:"mountedBy"`
}

const folderFields = `fragment folderFields on Vfolder {
  id name status createdAt deletedAt owner { id email } project { id name }
  quotaScope { limitBytes usedBytes volume { id name } } usedBytes fileCount mountedBy { id name }
}`

var listFolders = define[struct {
	Vfolders connection[Folder] `json:"vfolders"`
}](`query Vfolders($first: Int, $after: Cursor, $where: VfolderWhereInput) {
  vfolders(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...folderFields } } pageInfo { hasNextPage endCursor }
  }
}`, folderFields)

// FolderFilter narrows a list of folders; zero values do not.
type FolderFilter struct {
	ID, Name string
	Trash    bool // those in the trash, in place of those that can be used
}

// Folders lists folders in sight that can be used or are being cloned, or that are
// in the trash.
func (c *Client) Folders(ctx context.Context, f FolderFilter) ([]Folder, error) {
	where := nameIs(f.Name)
	if f.ID != "" {
		where["id"] = f.ID
	}
	where["statusIn"] = []string{"ready", "cloning"}
	if f.Trash {
		where["statusIn"] = []string{"trash"}
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

// UpdateFolderInput changes a folder; "" stays.
type UpdateFolderInput struct {
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	UsageMode  string `json:"usageMode,omitempty"`
	Permission string `json:"permission,omitempty"`
}

// UpdateFolder changes what is said of a folder.
func (c *Client) UpdateFolder(ctx context.Context, in UpdateFolderInput) (*Folder, error) {
	out, err := updateFolder.run(ctx, c, vars{"input": in})
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
