package vfolder

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/storage/storagepb"
)

const (
	// uploadLife is the validity of an upload's ticket, long enough for a large file over a
	// slow connection.
	uploadLife = ticket.Life
	// downloadLife is the time in which a download must start. It is short because the URL can
	// end up in logs.
	downloadLife = 2 * time.Minute
	maxUploads   = 1000
	maxUpload    = 1 << 44 // 16 TiB
	maxSearch    = 255     // bytes, the longest name of file systems
)

// CreateUpload signs a ticket for each file.
func (s *Service) CreateUpload(ctx context.Context, in CreateUploadInput) (*CreateUploadPayload, error) {
	f, err := s.writable(ctx, in.Vfolder)
	if err != nil {
		return nil, err
	}
	if len(in.Files) == 0 || len(in.Files) > maxUploads {
		return nil, problem.Invalid("files", "has %d files, which is too many", len(in.Files)).WithLimit("1..1000")
	}
	p, err := s.reach(f.Edges.QuotaScope.Edges.Volume.Name)
	if err != nil {
		return nil, err
	}
	expires := time.Now().UTC().Add(uploadLife).Truncate(time.Second)
	if err := s.recordTicket(ctx, f, true, expires); err != nil {
		return nil, err
	}
	out := &CreateUploadPayload{}
	for i, file := range in.Files {
		field := fmt.Sprintf("files[%d]", i)
		clean, err := cleanPath(field+".path", file.Path, false)
		if err != nil {
			return nil, err
		}
		if fault := folderpath.NewFault(clean); fault != "" {
			return nil, problem.Invalid(field+".path", "%.80q %s", clean, fault)
		}
		if file.Size < 0 || file.Size > maxUpload {
			return nil, problem.Invalid(field+".size", "%d bytes", file.Size).WithLimit(fmt.Sprintf("0..%d", int64(maxUpload)))
		}
		c := claims(ctx, f, "upload", clean, expires)
		c.Size = file.Size
		out.Uploads = append(out.Uploads, UploadTarget{
			Path: clean, URL: p.url + "/uploads", Ticket: s.Signer.Sign(c), ExpiresAt: expires,
		})
	}
	return out, nil
}

// CreateDownload signs a URL for a file, or for a directory as an archive.
func (s *Service) CreateDownload(ctx context.Context, in CreateDownloadInput) (*CreateDownloadPayload, error) {
	f, err := s.usable(ctx, in.Vfolder)
	if err != nil {
		return nil, err
	}
	if err := s.Allow(ctx, f, access.VolumeDownload); err != nil {
		return nil, err
	}
	clean, err := cleanPath("path", in.Path, true)
	if err != nil {
		return nil, err
	}
	p, err := s.reach(f.Edges.QuotaScope.Edges.Volume.Name)
	if err != nil {
		return nil, err
	}
	operation := "archive"
	if clean != "" {
		info, err := p.rpc.StatFile(ctx, fileRef(f, clean))
		if err != nil {
			return nil, fileError("path", clean, err)
		}
		if info.Type == storagepb.FileInfo_FILE {
			operation = "download"
		}
	}
	expires := time.Now().UTC().Add(downloadLife).Truncate(time.Second)
	if err := s.recordTicket(ctx, f, false, expires); err != nil {
		return nil, err
	}
	t := s.Signer.Sign(claims(ctx, f, operation, clean, expires))
	return &CreateDownloadPayload{URL: p.url + "/" + operation + "?ticket=" + url.QueryEscape(t), ExpiresAt: expires}, nil
}

func claims(ctx context.Context, f *ent.Vfolder, operation, path string, expires time.Time) ticket.Claims {
	scope := f.Edges.QuotaScope
	return ticket.Claims{
		Operation: operation, Volume: scope.Edges.Volume.Name, Scope: scope.HolderID.String(), Folder: f.ID.String(),
		Path: path, User: viewer.From(ctx).User.String(), Expires: expires,
	}
}

// Open returns the given folders that are ready and visible to the viewer, with one query, for
// use with Files.
func (s *Service) Open(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*ent.Vfolder, error) {
	all, err := s.Client.Vfolder.Query().
		Where(vfolder.IDIn(ids...), vfolder.StatusEQ(vfolder.StatusReady), vfolder.PathNEQ("")).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).All(ctx)
	m := make(map[uuid.UUID]*ent.Vfolder, len(all))
	for _, f := range all {
		m[f.ID] = f
	}
	return m, err
}

// Files returns one page of a directory of a folder that Open found.
func (s *Service) Files(ctx context.Context, f *ent.Vfolder, dir string, first int, after string) (*FileList, error) {
	clean, err := cleanPath("path", dir, true)
	if err != nil {
		return nil, err
	}
	p, err := s.readableAt(ctx, f)
	if err != nil {
		return nil, err
	}
	r, err := p.rpc.ListFiles(ctx, &storagepb.ListFilesRequest{
		Folder: folderRef(f), Path: clean, Limit: uint32(first), Cursor: after,
	})
	return fileList(clean, r, err)
}

// Search returns a page of the files whose names contain a text, in the tree below a path of a
// folder that Open returned.
func (s *Service) Search(ctx context.Context, f *ent.Vfolder, dir, text string, first int, after string) (*FileList, error) {
	clean, err := cleanPath("path", dir, true)
	if err != nil {
		return nil, err
	}
	if text == "" || len(text) > maxSearch {
		return nil, problem.Invalid("text", "has %d bytes", len(text)).WithLimit(fmt.Sprintf("1..%d", maxSearch))
	}
	p, err := s.readableAt(ctx, f)
	if err != nil {
		return nil, err
	}
	r, err := p.rpc.SearchFiles(ctx, &storagepb.SearchFilesRequest{
		Folder: folderRef(f), Path: clean, Text: text, Limit: uint32(first), Cursor: after,
	})
	return fileList(clean, r, err)
}

// readableAt returns the proxy of a folder if the viewer can read the folder.
func (s *Service) readableAt(ctx context.Context, f *ent.Vfolder) (*proxy, error) {
	if err := mayUse(ctx, f); err != nil {
		return nil, err
	}
	return s.reach(f.Edges.QuotaScope.Edges.Volume.Name)
}

func fileList(path string, r *storagepb.ListFilesResponse, err error) (*FileList, error) {
	if err != nil {
		return nil, fileError("path", path, err)
	}
	list := &FileList{Files: r.Files}
	if r.NextCursor != "" {
		list.EndCursor = &r.NextCursor
	}
	return list, nil
}

// usable returns a ready folder whose files the viewer can read. Administrators can see a
// folder without access to its files.
func (s *Service) usable(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	open, err := s.Open(ctx, []uuid.UUID{id})
	if err != nil {
		return nil, err
	}
	return open[id], mayUse(ctx, open[id])
}

func mayUse(ctx context.Context, f *ent.Vfolder) error {
	if f == nil {
		return problem.NotFound("folder").WithField("vfolder")
	}
	return permit.Inside(ctx, access.ReadFiles, f)
}

// writable returns the folder if the viewer can upload to it and its volume allows uploads;
// the error is of class not found or permission denied.
func (s *Service) writable(ctx context.Context, id uuid.UUID) (*ent.Vfolder, error) {
	f, err := s.usable(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := permit.To(ctx, access.WriteFiles, f); err != nil {
		return nil, err
	}
	return f, s.Allow(ctx, f, access.VolumeUpload)
}

// cleanPath accepts a relative path that stays inside its folder. The proxy checks again
// against the file system.
func cleanPath(field, p string, empty bool) (string, error) {
	if len(p) > folderpath.MaxPath {
		return "", problem.Invalid(field, "has %d bytes", len(p)).WithLimit(fmt.Sprint(folderpath.MaxPath))
	}
	clean := path.Clean("/" + p)[1:]
	if strings.ContainsRune(p, 0) || path.IsAbs(p) || clean != strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/") && p != "." {
		return "", problem.Invalid(field, "%.80q must be a clean path below the folder", p)
	}
	if clean == "" && !empty {
		return "", problem.Invalid(field, "must not be the folder itself")
	}
	if fault := folderpath.Fault(clean); clean != "" && fault != "" {
		return "", problem.Invalid(field, "%.80q %s", clean, fault)
	}
	return clean, nil
}

func folderRef(f *ent.Vfolder) *storagepb.FolderRef {
	return ref(f.Edges.QuotaScope.Edges.Volume, f.Edges.QuotaScope, f)
}

func fileRef(f *ent.Vfolder, path string) *storagepb.FileRef {
	return &storagepb.FileRef{Folder: folderRef(f), Path: path}
}

// fileError names the field and the path in errors that the user can correct.
func fileError(field, path string, err error) error {
	native := errgrpc.ToNative(err)
	p, known := problem.From(native)
	if !known {
		return native
	}
	switch p.Code {
	case problem.CodeNotFound:
		return problem.NotFound(path).WithField(field)
	case problem.CodeInvalidArgument:
		return problem.Invalid(field, "%s", p.Message)
	case problem.CodeAlreadyExists:
		return problem.Exists(field, "%s", p.Message)
	}
	return native
}
