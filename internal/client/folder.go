package client

import (
	"context"
	"time"
)

// Folder is a virtual folder.
type Folder struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Kind       string     `json:"kind"` // mine, project, shared or others
	Status     string     `json:"status"`
	UsageMode  string     `json:"usageMode"`
	Permission string     `json:"permission"` // of the members of its project
	CreatedAt  time.Time  `json:"createdAt"`
	DeletedAt  *time.Time `json:"deletedAt"`
	Owner      *UserRef   `json:"owner"`
	Project    *Ref       `json:"project"`
	QuotaScope struct {
		ID         string `json:"id"`
		LimitBytes *int64 `json:"limitBytes"`
		UsedBytes  *int64 `json:"usedBytes"`
		Volume     Ref    `json:"volume"`
	} `json:"quotaScope"`
	UsedBytes  *int64     `json:"usedBytes"` // nil: not measured yet
	FileCount  *int64     `json:"fileCount"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	MountedBy  []Ref      `json:"mountedBy"`
}

const folderFields = `fragment folderFields on Vfolder {
  id name kind status usageMode permission createdAt deletedAt lastUsedAt owner { id email } project { id name }
  quotaScope { id limitBytes usedBytes volume { id name } } usedBytes fileCount mountedBy { id name }
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
	ID, Name       string
	Search         string // a part of the name, in whatever case
	Kind           string
	Owner, Project string // ids
	UsageMode      string
	Trash          bool // those in the trash, in place of those that can be used
}

// Folders lists folders in sight that can be used or are being cloned, or that are
// in the trash.
func (c *Client) Folders(ctx context.Context, f FolderFilter) ([]Folder, error) {
	where := nameIs(f.Name)
	put(where, "id", f.ID)
	put(where, "nameContainsFold", f.Search)
	put(where, "kind", f.Kind)
	put(where, "ownerID", f.Owner)
	put(where, "projectID", f.Project)
	put(where, "usageMode", f.UsageMode)
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

// CreateFolderInput names a folder to come: one's own, or of a project. "" is the
// first volume, and what the server takes where nothing is said.
type CreateFolderInput struct {
	Name       string `json:"name"`
	Project    string `json:"project,omitempty"`
	Volume     string `json:"volume,omitempty"`
	UsageMode  string `json:"usageMode,omitempty"`
	Permission string `json:"permission,omitempty"`
}

// CreateFolder makes a folder.
func (c *Client) CreateFolder(ctx context.Context, in CreateFolderInput) (*Folder, error) {
	out, err := createFolder.run(ctx, c, vars{"input": in})
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
