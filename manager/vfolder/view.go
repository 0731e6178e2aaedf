package vfolder

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
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
		return nil, fmt.Errorf("read whose folders they are: %w", err)
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
