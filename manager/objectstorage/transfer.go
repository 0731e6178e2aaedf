package objectstorage

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
)

// The kinds of tasks.
const (
	importKind = "objectstorage.import"
	exportKind = "objectstorage.export"
	abortKind  = "objectstorage.abort"
)

// Existing is the treatment of a file or object that already exists.
type Existing string

// The treatments.
const (
	Update    Existing = "update"    // an equal one is kept, a different one is replaced
	Overwrite Existing = "overwrite" // it is replaced
	Fail      Existing = "fail"      // it is kept, and the task reports a failure
)

// ImportFolderInput imports the objects below a path of a storage into a directory of a
// folder.
type ImportFolderInput struct {
	Vfolder       uuid.UUID
	Directory     *string
	ObjectStorage uuid.UUID
	Path          *string // relative to the storage's prefix
	Existing      *Existing
}

// ExportFolderInput exports the file at a path of a folder, or the files below it, to a path
// of a storage.
type ExportFolderInput struct {
	Vfolder       uuid.UUID
	Path          *string
	ObjectStorage uuid.UUID
	Directory     *string
	Existing      *Existing
}

// FolderTransferPayload is the task that transfers the bytes.
type FolderTransferPayload struct {
	Vfolder *ent.Vfolder
	Task    *ent.Task
}

// moving is the input of both kinds of tasks.
type moving struct {
	Storage, Folder uuid.UUID
	Path            string // path in the folder: the target directory, or the exported path; "" is the whole folder
	Below           string // path in the storage below its prefix, without a final slash
	Existing        Existing
}

// ImportFolder imports from an object storage into a folder, in a task.
func (s *Service) ImportFolder(ctx context.Context, in ImportFolderInput) (*FolderTransferPayload, error) {
	f, err := s.folders.Target(ctx, in.Vfolder)
	if err != nil {
		return nil, err
	}
	row, err := s.usable(ctx, in.ObjectStorage, "objectStorage")
	if err != nil {
		return nil, err
	}
	if err := s.verify(ctx, row); err != nil {
		return nil, err
	}
	want, err := wanted(row, f, "directory", in.Directory, "path", in.Path, in.Existing)
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("Import %s to %s", where(row.Name, want.Below), where(f.Name, want.Path))
	return s.enqueue(ctx, importKind, title, f, want)
}

// ExportFolder exports files of a folder to an object storage, in a task.
func (s *Service) ExportFolder(ctx context.Context, in ExportFolderInput) (*FolderTransferPayload, error) {
	f, err := s.folders.Source(ctx, in.Vfolder)
	if err != nil {
		return nil, err
	}
	row, err := s.usable(ctx, in.ObjectStorage, "objectStorage")
	if err != nil {
		return nil, err
	}
	if err := s.verify(ctx, row); err != nil {
		return nil, err
	}
	if row.ReadOnly {
		return nil, problem.Precondition("object storage %s is read-only", row.Name).WithField("objectStorage")
	}
	want, err := wanted(row, f, "path", in.Path, "directory", in.Directory, in.Existing)
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("Export %s to %s", where(f.Name, want.Path), where(row.Name, want.Below))
	return s.enqueue(ctx, exportKind, title, f, want)
}

func wanted(row *ent.ObjectStorage, f *ent.Vfolder, pathField string, p *string, belowField string, below *string, existing *Existing) (moving, error) {
	m := moving{Storage: row.ID, Folder: f.ID, Existing: Update}
	if existing != nil {
		m.Existing = *existing
	}
	for _, part := range []struct {
		field string
		said  *string
		to    *string
	}{{pathField, p, &m.Path}, {belowField, below, &m.Below}} {
		if part.said == nil {
			continue
		}
		clean, err := cleanPrefix(part.field, *part.said)
		if err != nil {
			return m, err
		}
		*part.to = strings.TrimSuffix(clean, "/")
	}
	if n := len(row.Prefix) + len(m.Below); n >= maxKey {
		return m, problem.Invalid(belowField, "has %d bytes together with the prefix of the storage", n).WithLimit(fmt.Sprint(maxKey - 1))
	}
	return m, nil
}

func where(name, below string) string {
	if below == "" {
		return name
	}
	if len(below) > 80 {
		below = "…/" + path.Base(below)
	}
	return name + ":" + below
}

func (s *Service) enqueue(ctx context.Context, kind, title string, f *ent.Vfolder, want moving) (*FolderTransferPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	out := &FolderTransferPayload{Vfolder: f}
	err := store.InTx(ctx, s.client, func(tx *ent.Tx) (err error) {
		out.Task, err = s.tasks.Enqueue(ctx, tx, tasks.Wanted{Kind: kind, Title: title, Input: want, Subject: f.ID, Domain: f.DomainID})
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Task = out.Task.Unwrap()
	s.tasks.Wake(ctx, out.Task.ID)
	s.folders.Changed(ctx, f.ID)
	return out, nil
}
