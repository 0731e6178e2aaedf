package vfolder

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volumegrant"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/storage/storagepb"
)

// View answers storage proxies: it returns the folders that a credential gives access to, and
// records file activity.
type View struct {
	storagepb.UnimplementedFoldersServer
	Folders  *Service
	Visitors Visitors
	// Audit writes file activity to the audit log.
	Audit func(context.Context, FileActivity)
}

// Visitors authenticates a token or key that a client presents to a proxy. It determines the
// client's address from the connection and the headers of the request.
type Visitors interface {
	Visitor(ctx context.Context, token, peer string, forwarded []string) (*viewer.Viewer, netip.Addr, error)
	Keyholder(ctx context.Context, email string, key []byte, peer string) (*viewer.Viewer, netip.Addr, error)
}

// List answers ListRequest of a proxy.
func (v *View) List(ctx context.Context, q *storagepb.ListRequest) (*storagepb.ListResponse, error) {
	who, from, err := v.visitor(ctx, q)
	if err == nil {
		var out *storagepb.ListResponse
		if out, err = v.Folders.opens(viewer.With(ctx, who)); err == nil {
			out.Credential = who.Credential[:]
			if from.IsValid() {
				out.Address = from.String()
			}
			return out, nil
		}
	}
	if p, known := problem.From(err); known && p.Code == problem.CodeUnauthenticated {
		return nil, errgrpc.ToGRPC(fmt.Errorf("%s: %w", p.Message, errdefs.ErrUnauthenticated))
	}
	v.Folders.Logger.ErrorContext(ctx, "folders of a token", "error", err)
	return nil, errgrpc.ToGRPC(fmt.Errorf("folders of a token: %w", errdefs.ErrUnavailable))
}

func (v *View) visitor(ctx context.Context, q *storagepb.ListRequest) (*viewer.Viewer, netip.Addr, error) {
	if len(q.PublicKey) > 0 {
		return v.Visitors.Keyholder(ctx, q.Email, q.PublicKey, q.Peer)
	}
	return v.Visitors.Visitor(ctx, q.Token, q.Peer, q.Forwarded)
}

// opens lists the folders whose files the viewer can read, ordered by id.
func (s *Service) opens(ctx context.Context) (*storagepb.ListResponse, error) {
	who := viewer.From(ctx)
	rows, err := s.Client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusReady), vfolder.PathNEQ("")).
		WithQuotaScope(func(q *ent.QuotaScopeQuery) { q.WithVolume() }).Order(vfolder.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list folders: %w", err)
	}
	rows = slices.DeleteFunc(rows, func(f *ent.Vfolder) bool { return mayUse(ctx, f) != nil })
	grants, err := s.grantsOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	paths, err := s.paths(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := &storagepb.ListResponse{User: who.User[:]}
	for _, f := range rows {
		project := uuid.Nil
		if f.ProjectID != nil {
			project = *f.ProjectID
		}
		may := Union(grants[f.Edges.QuotaScope.Edges.Volume.ID], f.DomainID, project, who.User)
		out.Folders = append(out.Folders, &storagepb.OpenFolder{
			Folder: folderRef(f), Path: paths[f.ID],
			Read:  slices.Contains(may, access.VolumeDownload),
			Write: slices.Contains(may, access.VolumeUpload) && permit.To(ctx, access.WriteFiles, f) == nil,
		})
	}
	return out, nil
}

// grantsOf returns the grants of the folders' volumes.
func (s *Service) grantsOf(ctx context.Context, rows []*ent.Vfolder) (map[uuid.UUID][]*ent.VolumeGrant, error) {
	var volumes []uuid.UUID
	for _, f := range rows {
		if id := f.Edges.QuotaScope.Edges.Volume.ID; !slices.Contains(volumes, id) {
			volumes = append(volumes, id)
		}
	}
	list, err := s.Client.VolumeGrant.Query().Where(volumegrant.VolumeIDIn(volumes...)).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read grants of volumes: %w", err)
	}
	out := map[uuid.UUID][]*ent.VolumeGrant{}
	for _, g := range list {
		out[g.VolumeID] = append(out[g.VolumeID], g)
	}
	return out, nil
}

// paths returns the paths of folders in a view: mine/NAME, projects/PROJECT/NAME and
// shared/OWNER/NAME. A user who can see a folder may see its owner.
func (s *Service) paths(ctx context.Context, rows []*ent.Vfolder) (map[uuid.UUID][]string, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, f := range rows {
		ids[i] = f.ID
	}
	named, err := s.Client.Vfolder.Query().Where(vfolder.IDIn(ids...)).WithOwner().WithProject().All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read the owners of folders: %w", err)
	}
	out := make(map[uuid.UUID][]string, len(named))
	for _, f := range named {
		switch {
		case f.Edges.Project != nil:
			out[f.ID] = []string{"projects", f.Edges.Project.Name, f.Name}
		case f.Edges.Owner != nil && f.Edges.Owner.ID == viewer.From(ctx).User:
			out[f.ID] = []string{"mine", f.Name}
		case f.Edges.Owner != nil:
			out[f.ID] = []string{"shared", f.Edges.Owner.Email, f.Name}
		}
	}
	return out, nil
}

// FileActivity is the activity of one client in a folder during some time, through a proxy.
type FileActivity struct {
	Action  string // readFiles or changeFiles
	Who     *viewer.Viewer
	Address string
	Folder  uuid.UUID
	Message string
	Took    time.Duration
}

// Record writes the file activity that a proxy reports to the audit log: one row for reads and
// one for changes, for one client in one folder during about a minute.
func (v *View) Record(ctx context.Context, q *storagepb.RecordRequest) (*storagepb.RecordResponse, error) {
	who, err := v.Folders.actors(ctx, q.Activities)
	if err != nil {
		v.Folders.Logger.ErrorContext(ctx, "record file activity", "error", err)
		return nil, errgrpc.ToGRPC(fmt.Errorf("record: %w", errdefs.ErrUnavailable))
	}
	for _, d := range q.Activities {
		id, _ := uuid.FromBytes(d.User)
		folder, err := uuid.Parse(d.Folder)
		if who[id] == nil || err != nil {
			v.Folders.Logger.WarnContext(ctx, "file activity has an unknown user or folder", "user", id, "folder", d.Folder)
			continue
		}
		one := *who[id]
		one.Credential, _ = uuid.FromBytes(d.Credential)
		activity := FileActivity{Who: &one, Address: d.Address, Folder: folder, Took: time.Duration(d.EndedUnixMs-d.BeganUnixMs) * time.Millisecond}
		reads := func(x *storagepb.FileOperation) bool { return x.Kind == storagepb.FileOperation_READ }
		if i := slices.IndexFunc(d.Operations, reads); i >= 0 {
			activity.Action, activity.Message = "readFiles", describe(d, d.Operations[i:i+1])
			v.Audit(ctx, activity)
		}
		if changes := slices.DeleteFunc(slices.Clone(d.Operations), reads); len(changes) > 0 {
			activity.Action, activity.Message = "changeFiles", describe(d, changes)
			v.Audit(ctx, activity)
		}
	}
	return &storagepb.RecordResponse{}, nil
}

// actors returns the users of the activities.
func (s *Service) actors(ctx context.Context, list []*storagepb.FileActivity) (map[uuid.UUID]*viewer.Viewer, error) {
	var ids []uuid.UUID
	for _, d := range list {
		if id, err := uuid.FromBytes(d.User); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	rows, err := s.Client.User.Query().Where(user.IDIn(ids...)).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	out := make(map[uuid.UUID]*viewer.Viewer, len(rows))
	for _, u := range rows {
		out[u.ID] = &viewer.Viewer{User: u.ID, Email: u.Email, Domain: u.DomainID, Role: viewer.RoleUser}
	}
	return out, nil
}

var verbs = map[storagepb.FileOperation_Kind]string{
	storagepb.FileOperation_READ: "read", storagepb.FileOperation_WROTE: "wrote", storagepb.FileOperation_MADE: "made directories",
	storagepb.FileOperation_MOVED: "moved", storagepb.FileOperation_REMOVED: "deleted", storagepb.FileOperation_SET: "set modes or times of",
}

// describe summarizes operations in one line. The audit log truncates long messages, so the
// numbers come first.
func describe(d *storagepb.FileActivity, list []*storagepb.FileOperation) string {
	counts, paths := make([]string, len(list)), make([]string, 0, len(list))
	for i, x := range list {
		verb := verbs[x.Kind]
		if verb == "" {
			verb = strings.ToLower(x.Kind.String())
		}
		counts[i] = fmt.Sprintf("%s %d", verb, x.Count)
		if x.Bytes > 0 {
			counts[i] += fmt.Sprintf(" (%d bytes)", x.Bytes)
		}
		quoted := make([]string, len(x.Paths))
		for j, p := range x.Paths {
			quoted[j] = fmt.Sprintf("%q", p)
		}
		if more := x.Count - int64(len(quoted)); more > 0 {
			quoted = append(quoted, fmt.Sprintf("%d more", more))
		}
		paths = append(paths, verb+" "+strings.Join(quoted, ", "))
	}
	began := time.UnixMilli(d.BeganUnixMs).UTC().Format(time.TimeOnly)
	ended := time.UnixMilli(d.EndedUnixMs).UTC().Format(time.TimeOnly)
	return fmt.Sprintf("%s, %s to %s UTC: %s. %s", d.Protocol, began, ended, strings.Join(counts, ", "), strings.Join(paths, "; "))
}
