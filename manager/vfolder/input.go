package vfolder

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/storage/storagepb"
)

// CreateVfolderInput describes a new folder.
type CreateVfolderInput struct {
	Name       string
	Volume     *uuid.UUID
	Project    *uuid.UUID
	UsageMode  *vfolder.UsageMode
	Permission *access.FolderPermission
}

// UpdateVfolderInput changes the fields that are not nil.
type UpdateVfolderInput struct {
	ID         uuid.UUID
	Name       *string
	UsageMode  *vfolder.UsageMode
	Permission *access.FolderPermission
}

// TrashVfolderInput and DeleteVfolderInput name a folder.
type (
	TrashVfolderInput  struct{ ID uuid.UUID }
	DeleteVfolderInput struct{ ID uuid.UUID }
)

// RestoreVfolderInput names a folder in the trash, and optionally its new name.
type RestoreVfolderInput struct {
	ID   uuid.UUID
	Name *string
}

// EmptyTrashInput selects the trash of a project; without one, the viewer's own.
type EmptyTrashInput struct{ Project *uuid.UUID }

// CloneVfolderInput describes a clone of a folder. By default, it is on the same volume.
type CloneVfolderInput struct {
	ID         uuid.UUID
	Name       string
	Volume     *uuid.UUID
	Project    *uuid.UUID
	UsageMode  *vfolder.UsageMode
	Permission *access.FolderPermission
}

// HandOverVfolderInput names a user's folder and its next owner.
type HandOverVfolderInput struct{ ID, User uuid.UUID }

// UploadFileInput describes one file to upload.
type UploadFileInput struct {
	Path string
	Size int64
}

// CreateUploadInput requests tickets to upload files.
type CreateUploadInput struct {
	Vfolder uuid.UUID
	Files   []UploadFileInput
}

// CreateDownloadInput requests a URL to download a file or directory.
type CreateDownloadInput struct {
	Vfolder uuid.UUID
	Path    string
}

// CreateDirectoriesInput lists directories to create.
type CreateDirectoriesInput struct {
	Vfolder uuid.UUID
	Paths   []string
}

// MoveFileItem is a path in a folder and its new path.
type MoveFileItem struct{ From, To string }

// MoveFilesInput moves or renames files, within a folder or to another one.
type MoveFilesInput struct {
	Vfolder   uuid.UUID
	Items     []MoveFileItem
	ToVfolder *uuid.UUID
	Overwrite *bool
}

// CopyFilesInput copies files, within a folder or to another one.
type CopyFilesInput MoveFilesInput

// DeleteFilesInput lists paths to delete; directories need Recursive.
type DeleteFilesInput struct {
	Vfolder   uuid.UUID
	Paths     []string
	Recursive *bool
}

// VfolderPayload is the result of mutations of a folder.
type VfolderPayload struct{ Vfolder *ent.Vfolder }

// VfolderTaskPayload is the result of mutations that start a task.
type VfolderTaskPayload struct {
	Vfolder *ent.Vfolder
	Task    *ent.Task
}

// EmptyTrashPayload is the number of folders that are being deleted.
type EmptyTrashPayload struct{ Count int }

// UploadTarget is the URL and the ticket for the upload of one file.
type UploadTarget struct {
	Path      string
	URL       string
	Ticket    string
	ExpiresAt time.Time
}

// CreateUploadPayload has one target per file, in the order of the request.
type CreateUploadPayload struct{ Uploads []UploadTarget }

// CreateDownloadPayload has a complete URL with its ticket.
type CreateDownloadPayload struct {
	URL       string
	ExpiresAt time.Time
}

// FilesPayload has one result per path, in the order of the request.
type FilesPayload struct{ Results []FileResult }

// FileResult is the result for one path; Error is nil after success.
type FileResult struct {
	Path  string
	Error *string
}

// FileList is one page of a directory.
type FileList struct {
	Files     []*storagepb.FileInfo
	EndCursor *string
}
