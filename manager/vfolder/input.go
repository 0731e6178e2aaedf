package vfolder

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/storage/storagepb"
)

// CreateVfolderInput names a new folder and where it lives.
type CreateVfolderInput struct {
	Name       string
	Volume     *uuid.UUID
	Project    *uuid.UUID
	UsageMode  *vfolder.UsageMode
	Permission *access.FolderPermission
}

// UpdateVfolderInput changes what it names of a folder.
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

// RestoreVfolderInput names a folder in the trash, and perhaps another name for it.
type RestoreVfolderInput struct {
	ID   uuid.UUID
	Name *string
}

// EmptyTrashInput names whose trash; one's own without a project.
type EmptyTrashInput struct{ Project *uuid.UUID }

// CloneVfolderInput names a folder and what becomes of its copy, which goes to the
// same volume when none is named.
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

// UploadFileInput declares one file to come.
type UploadFileInput struct {
	Path string
	Size int64
}

// CreateUploadInput asks for tickets to upload files.
type CreateUploadInput struct {
	Vfolder uuid.UUID
	Files   []UploadFileInput
}

// CreateDownloadInput asks for a URL to download a file or directory.
type CreateDownloadInput struct {
	Vfolder uuid.UUID
	Path    string
}

// MakeDirectoriesInput names directories to make.
type MakeDirectoriesInput struct {
	Vfolder uuid.UUID
	Paths   []string
}

// MoveFileItem is a path of a folder and its new one.
type MoveFileItem struct{ From, To string }

// MoveFilesInput moves or renames, within a folder or to another one.
type MoveFilesInput struct {
	Vfolder   uuid.UUID
	Items     []MoveFileItem
	ToVfolder *uuid.UUID
	Overwrite *bool
}

// CopyFilesInput copies, within a folder or to another one.
type CopyFilesInput MoveFilesInput

// DeleteFilesInput names what to delete; directories only where it is recursive.
type DeleteFilesInput struct {
	Vfolder   uuid.UUID
	Paths     []string
	Recursive *bool
}

// VfolderPayload answers the mutations of a folder.
type VfolderPayload struct{ Vfolder *ent.Vfolder }

// VfolderTaskPayload answers those that a task does.
type VfolderTaskPayload struct {
	Vfolder *ent.Vfolder
	Task    *ent.Task
}

// EmptyTrashPayload tells how many folders are being deleted.
type EmptyTrashPayload struct{ Count int }

// UploadTarget says where and with which ticket one file is uploaded.
type UploadTarget struct {
	Path      string
	URL       string
	Ticket    string
	ExpiresAt time.Time
}

// CreateUploadPayload has one target per file, in the order asked.
type CreateUploadPayload struct{ Uploads []UploadTarget }

// CreateDownloadPayload has a complete URL with its ticket.
type CreateDownloadPayload struct {
	URL       string
	ExpiresAt time.Time
}

// FilesPayload has one result per path, in the order asked.
type FilesPayload struct{ Results []FileResult }

// FileResult is what came of one path; Error is nil when it went well.
type FileResult struct {
	Path  string
	Error *string
}

// FileList is one page of a directory.
type FileList struct {
	Files     []*storagepb.FileInfo
	EndCursor *string
}
