package vfolder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

const cloneKind = "vfolder.clone"

// cloning is the input of a task that clones a folder.
type cloning struct{ From, To uuid.UUID }

// CloneVfolder clones a folder that the viewer can read, as a folder of their own or of a
// project in which they can create folders. The clone is returned at once and is ready when
// its task has ended.
func (s *Service) CloneVfolder(ctx context.Context, in CloneVfolderInput) (*VfolderTaskPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	from, err := s.inState(ctx, in.ID, vfolder.StatusReady)
	if err != nil {
		return nil, err
	}
	if from.Path == "" {
		return nil, problem.NotFound("folder").WithField("id")
	}
	if err := s.changeable(ctx, from, access.VolumeDownload, access.ReadFiles); err != nil {
		return nil, err
	}
	vol := from.Edges.QuotaScope.Edges.Volume
	if in.Volume == nil {
		in.Volume = &vol.ID
	}
	w, err := s.wanted(ctx, v, folderRequest{in.Name, in.Volume, in.Project, in.UsageMode, in.Permission})
	if err != nil {
		return nil, err
	}
	if err := s.together(ctx, vol, w.volume, "volume"); err != nil {
		return nil, err
	}
	if w.mode == nil {
		w.mode = &from.UsageMode
	}
	brings := from.UsedBytes
	if brings == nil {
		brings = new(int64)
	}
	out := &VfolderTaskPayload{}
	var f *ent.Vfolder
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		f, err = s.store(ctx, tx, v, w, brings, func(c *ent.VfolderCreate) {
			c.SetStatus(vfolder.StatusCloning).SetClonedFromID(from.ID)
		})
		if err != nil {
			return err
		}
		out.Task, err = s.Tasks.Enqueue(ctx, tx, tasks.Wanted{
			Kind: cloneKind, Title: fmt.Sprintf("Clone folder %s to %s", from.Name, f.Name),
			Input: cloning{From: from.ID, To: f.ID}, Subject: f.ID, Domain: f.DomainID,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.enqueued(ctx, f.ID, out, nil)
}

// together returns an error if no proxy serves both volumes.
func (s *Service) together(ctx context.Context, from, to *ent.Volume, field string) error {
	if from.ID == to.ID || from.ProxyID == to.ProxyID {
		return nil
	}
	if _, err := s.reach(from.Name, to.Name); err == nil {
		return nil
	}
	names := map[uuid.UUID]string{}
	all, err := s.Client.Volume.Query().Where(volume.IDIn(from.ID, to.ID)).WithProxy().All(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read storage proxies: %w", err)
	}
	for _, v := range all {
		names[v.ID] = v.Edges.Proxy.Name
	}
	return problem.Precondition("volume %s is served by storage proxy %s and volume %s by %s: files are copied within one proxy only",
		from.Name, names[from.ID], to.Name, names[to.ID]).WithField(field)
}

// cloner runs the tasks that clone folders.
type cloner struct{ *Service }

// Undo deletes the clone, complete or not.
func (c cloner) Undo(ctx context.Context, tx *ent.Tx, t *ent.Task) error {
	var in cloning
	if err := json.Unmarshal(t.Input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	to, err := tx.Vfolder.Query().Where(vfolder.ID(in.To), vfolder.StatusEQ(vfolder.StatusCloning)).ForUpdate().Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return problem.Precondition("the clone already exists or was cancelled")
	}
	if err != nil {
		return fmt.Errorf("lock folder: %w", err)
	}
	_, err = c.discard(ctx, tx, to, t.ID)
	return err
}

func (c cloner) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	var in cloning
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	to, err := c.whole(ctx, in.To)
	switch {
	case ent.IsNotFound(err) || err == nil && (to.Status == vfolder.StatusDeleting || to.Status == vfolder.StatusDeleted):
		return problem.Precondition("the clone was cancelled: clone the folder again")
	case err != nil:
		return err
	case to.Status != vfolder.StatusCloning:
		return nil // it was already complete
	}
	from, err := c.readable(ctx, at.By(), in.From)
	if err != nil {
		return err
	}
	vols := []*ent.Volume{from.Edges.QuotaScope.Edges.Volume, to.Edges.QuotaScope.Edges.Volume}
	p, err := c.reach(vols[0].Name, vols[1].Name)
	if err != nil {
		return later(vols[1].Name, err)
	}
	whole, err := c.cloned(ctx, p, from, to, at)
	if err != nil {
		return later(vols[1].Name, err)
	}
	up := c.Client.Vfolder.Update().Where(vfolder.ID(to.ID), vfolder.StatusEQ(vfolder.StatusCloning)).
		SetStatus(vfolder.StatusReady).SetPath(whole.Path)
	if whole.UsedBytes != nil {
		up.SetUsedBytes(*whole.UsedBytes).SetMeasuredAt(clock.Now())
	}
	if whole.Files != nil {
		up.SetFileCount(*whole.Files)
	}
	if err := up.Exec(ctx); err != nil {
		return fmt.Errorf("note clone: %w", err)
	}
	c.changed(ctx, to.ID)
	return nil
}

// cloned creates the clone at the proxy and returns it.
func (s *Service) cloned(ctx context.Context, p *proxy, from, to *ent.Vfolder, at *tasks.Progress) (*storagepb.Folder, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := s.makeScope(ctx, p, to.Edges.QuotaScope, to.Edges.QuotaScope.Edges.Volume); err != nil {
		return nil, err
	}
	stream, err := p.rpc.CloneFolder(ctx, &storagepb.CloneFolderRequest{From: folderRef(from), To: folderRef(to)})
	if err != nil {
		return nil, errgrpc.ToNative(err)
	}
	var left leftOut
	if err := follow(ctx, stream, at, left.add); err != nil {
		return nil, err
	}
	at.Remark(left.String())
	whole, err := p.rpc.GetFolder(ctx, folderRef(to))
	if err != nil {
		return nil, fmt.Errorf("read folder: %w", errgrpc.ToNative(err))
	}
	return whole, nil
}

// leftOut lists the paths that a clone lacks.
type leftOut struct {
	paths []string // the first of the paths
	all   int
}

// leftOutNamed is the number of paths in the message.
const leftOutNamed = 5

func (l *leftOut) add(results []*storagepb.FileResult) any {
	for _, r := range results {
		if l.all++; len(l.paths) < leftOutNamed {
			l.paths = append(l.paths, fmt.Sprintf("%.80q", r.Path))
		}
	}
	return nil
}

func (l *leftOut) String() string {
	if l.all == 0 {
		return ""
	}
	text := fmt.Sprintf("left out files more than %d levels deep, in %s", folderpath.MaxDepth, strings.Join(l.paths, ", "))
	if more := l.all - len(l.paths); more > 0 {
		text += fmt.Sprintf(" and %d more directories", more)
	}
	return text
}

// readable returns a folder that a user can read now. A task checks this again, because it may
// have waited for a long time.
func (s *Service) readable(ctx context.Context, user, folder uuid.UUID) (*ent.Vfolder, error) {
	if err := s.kept(ctx, Use{User: user, Folder: folder}, "the folder it is copied from"); err != nil {
		return nil, err
	}
	return s.whole(ctx, folder)
}

// saveEvery is the shortest pause between two writes of a task's progress.
const saveEvery = 500 * time.Millisecond

// follow waits for a long call to end and saves its progress: bytes if the call copies bytes,
// files otherwise. The function settled, if not nil, receives the results of paths and returns
// the state to continue from.
func follow(ctx context.Context, stream grpc.ServerStreamingClient[storagepb.Progress], at *tasks.Progress, settled func([]*storagepb.FileResult) any) error {
	var saved time.Time
	for {
		p, err := stream.Recv()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return errgrpc.ToNative(err)
		}
		if err != nil {
			return fmt.Errorf("the call ended early: %w", errdefs.ErrUnavailable)
		}
		var state any
		if settled != nil {
			state = settled(p.Results)
		}
		if p.Finished || len(p.Results) > 0 || time.Since(saved) >= saveEvery {
			done, total := p.Files, p.FilesTotal
			if p.BytesTotal > 0 {
				done, total = p.Bytes, p.BytesTotal
			}
			if err := at.Save(ctx, state, done, total); err != nil {
				return err
			}
			saved = time.Now()
		}
		if p.Finished {
			return nil
		}
	}
}

// later converts an error of a proxy to the error of a task: the task waits while the proxy is
// not connected, and while the same work is already running.
func later(volume string, err error) error {
	switch {
	case errdefs.IsUnavailable(err):
		return tasks.Wait("a storage proxy that serves volume %s", volume)
	case errdefs.IsAborted(err):
		return tasks.Wait("other work on the folder to end")
	}
	return err
}
