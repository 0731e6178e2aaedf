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
