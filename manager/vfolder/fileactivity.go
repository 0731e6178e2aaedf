package vfolder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// Deed is what someone did with the files of a folder for some time, through a
// proxy.
type Deed struct {
	Action  string // readFiles or changeFiles
	Who     *viewer.Viewer
	Address string
	Folder  uuid.UUID
	Message string
	Took    time.Duration
}

// Record puts into the trail what a proxy tells: one row for what was read and one
// for what was changed, by one client in one folder in about a minute.
func (v *View) Record(ctx context.Context, q *storagepb.RecordRequest) (*storagepb.RecordResponse, error) {
	who, err := v.Folders.doers(ctx, q.Doings)
	if err != nil {
		v.Folders.log.ErrorContext(ctx, "record what was done with files", "error", err)
		return nil, errgrpc.ToGRPC(fmt.Errorf("record: %w", errdefs.ErrUnavailable))
	}
	for _, d := range q.Doings {
		id, _ := uuid.FromBytes(d.User)
		folder, err := uuid.Parse(d.Folder)
		if who[id] == nil || err != nil {
			v.Folders.log.WarnContext(ctx, "record what was done with files: nobody knows who or where", "user", id, "folder", d.Folder)
			continue
		}
		one := *who[id]
		one.Credential, _ = uuid.FromBytes(d.Credential)
		deed := Deed{Who: &one, Address: d.Address, Folder: folder, Took: time.Duration(d.EndedUnixMs-d.BeganUnixMs) * time.Millisecond}
		reads := func(x *storagepb.Doing) bool { return x.Kind == storagepb.Doing_READ }
		if i := slices.IndexFunc(d.Done, reads); i >= 0 {
			deed.Action, deed.Message = "readFiles", tell(d, d.Done[i:i+1])
			v.Trail(ctx, deed)
		}
		if changes := slices.DeleteFunc(slices.Clone(d.Done), reads); len(changes) > 0 {
			deed.Action, deed.Message = "changeFiles", tell(d, changes)
			v.Trail(ctx, deed)
		}
	}
	return &storagepb.RecordResponse{}, nil
}

// doers are the users who did something.
func (s *Service) doers(ctx context.Context, list []*storagepb.Doings) (map[uuid.UUID]*viewer.Viewer, error) {
	var ids []uuid.UUID
	for _, d := range list {
		if id, err := uuid.FromBytes(d.User); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	rows, err := s.client.User.Query().Where(user.IDIn(ids...)).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	out := make(map[uuid.UUID]*viewer.Viewer, len(rows))
	for _, u := range rows {
		out[u.ID] = &viewer.Viewer{User: u.ID, Email: u.Email, Domain: u.DomainID, Role: viewer.RoleUser}
	}
	return out, nil
}

var verbs = map[storagepb.Doing_Kind]string{
	storagepb.Doing_READ: "read", storagepb.Doing_WROTE: "wrote", storagepb.Doing_MADE: "made directories",
	storagepb.Doing_MOVED: "moved", storagepb.Doing_REMOVED: "deleted", storagepb.Doing_SET: "set modes or times of",
}

// tell says in one line what was done. The trail cuts what is too long, so the
// numbers come first.
func tell(d *storagepb.Doings, list []*storagepb.Doing) string {
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
