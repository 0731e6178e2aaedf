package client

import "context"

var restoreFolder = define[folderPayload](`mutation RestoreVfolder($input: RestoreVfolderInput!) {
  payload: restoreVfolder(input: $input) { vfolder { ...folderFields } }
}`, folderFields)

// RestoreFolder takes a folder out of the trash; name "" is the one it had.
func (c *Client) RestoreFolder(ctx context.Context, id, name string) (*Folder, error) {
	input := vars{"id": id}
	put(input, "name", name)
	out, err := restoreFolder.run(ctx, c, vars{"input": input})
	return &out.Payload.Vfolder, err
}

var emptyTrash = define[payload[struct {
	Count int `json:"count"`
}]](`mutation EmptyTrash($input: EmptyTrashInput!) { payload: emptyTrash(input: $input) { count } }`)

// EmptyTrash deletes what is in one's own trash, or in a project's, forever. It
// returns how many folders that are.
func (c *Client) EmptyTrash(ctx context.Context, project string) (int, error) {
	input := vars{}
	put(input, "project", project)
	out, err := change(ctx, c, emptyTrash, input)
	return out.Count, err
}

// FolderTask is a folder and the work that continues with it.
type FolderTask struct {
	Vfolder Folder `json:"vfolder"`
	Task    Task   `json:"task"`
}

var deleteFolder = define[payload[FolderTask]](`mutation DeleteVfolder($input: DeleteVfolderInput!) {
  payload: deleteVfolder(input: $input) { vfolder { ...folderFields } task { ...taskFields } }
}`, folderFields, taskFields)

// DeleteFolder deletes a folder in the trash and its data forever.
func (c *Client) DeleteFolder(ctx context.Context, id string) (*FolderTask, error) {
	out, err := change(ctx, c, deleteFolder, idOf{id})
	return &out, err
}

// CloneFolderInput says what a copy becomes; "" is as the original.
type CloneFolderInput struct {
	ID string `json:"id"`
	CreateFolderInput
}

var cloneFolder = define[payload[FolderTask]](`mutation CloneVfolder($input: CloneVfolderInput!) {
  payload: cloneVfolder(input: $input) { vfolder { ...folderFields } task { ...taskFields } }
}`, folderFields, taskFields)

// CloneFolder begins to copy a folder.
func (c *Client) CloneFolder(ctx context.Context, in CloneFolderInput) (*FolderTask, error) {
	out, err := change(ctx, c, cloneFolder, in)
	return &out, err
}

var handOverFolder = define[payload[FolderTask]](`mutation HandOverVfolder($input: HandOverVfolderInput!) {
  payload: handOverVfolder(input: $input) { vfolder { ...folderFields } task { ...taskFields } }
}`, folderFields, taskFields)

// HandOverFolder begins to give a folder to another user.
func (c *Client) HandOverFolder(ctx context.Context, id, user string) (*FolderTask, error) {
	out, err := change(ctx, c, handOverFolder, vars{"id": id, "user": user})
	return &out, err
}

var copyFiles = define[payload[FolderTask]](`mutation CopyFiles($input: CopyFilesInput!) {
  payload: copyFiles(input: $input) { vfolder { ...folderFields } task { ...taskFields } }
}`, folderFields, taskFields)

// CopyFiles begins to copy files and directories; to is the folder they go to.
func (c *Client) CopyFiles(ctx context.Context, folder, to string, items []MoveItem, overwrite bool) (*FolderTask, error) {
	out, err := change(ctx, c, copyFiles, vars{"vfolder": folder, "toVfolder": to, "items": items, "overwrite": overwrite})
	return &out, err
}
