package vfolder

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/storage/storagepb"
)

// CreateVfolderInput names a new folder and where it lives.
type CreateVfolderInput struct {
	Name    string
	Volume  *uuid.UUID
	Project *uuid.UUID
}

// RenameVfolderInput gives a folder another name.
type RenameVfolderInput struct {
	ID   uuid.UUID
	Name string
}

// DeleteVfolderInput names the folder to delete.
type DeleteVfolderInput struct{ ID uuid.UUID }

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

// MakeDirectoryInput names a directory to make.
type MakeDirectoryInput struct {
	Vfolder uuid.UUID
	Path    string
}

// MoveFileInput moves or renames a file within a folder.
type MoveFileInput struct {
	Vfolder   uuid.UUID
	From, To  string
	Overwrite *bool
}

// DeleteFilesInput names files and directories to delete.
type DeleteFilesInput struct {
	Vfolder uuid.UUID
	Paths   []string
}

// VfolderPayload answers the mutations of a folder.
type VfolderPayload struct{ Vfolder *ent.Vfolder }

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

// FilePayload answers a change of one file.
type FilePayload struct{ File *storagepb.FileInfo }

// DeleteFilesPayload has one result per path.
type DeleteFilesPayload struct{ Results []*storagepb.FileResult }

// FileList is one page of a directory.
type FileList struct {
	Files     []*storagepb.FileInfo
	EndCursor *string
}
