package objectstorage

import (
	"context"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

// exporter runs the tasks that export files of folders.
type exporter struct{ *Service }

func (e exporter) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	r, err := e.begin(ctx, at, input, false)
	if r == nil {
		return err
	}
	s := &sending{run: r}
	if err == nil {
		err = r.end(ctx, s.all(ctx))
	}
	if p, known := problem.From(err); err != nil && known && tasks.Hopeless(p.Code) {
		s.drop(ctx)
	}
	return err
}

// sending is a running export.
type sending struct {
	*run
	top string // part of the paths that is left out of the keys
}

func (r *sending) all(ctx context.Context) error {
	return walk[*storagepb.TreeFile]{
		run: r.run, list: r.list, move: r.page, verb: "exported",
		at: func(f *storagepb.TreeFile) (string, int64) { return f.Path, f.Size },
	}.all(ctx)
}

func (r *sending) list(ctx context.Context, after string, most int) ([]*storagepb.TreeFile, bool, error) {
	at, err := r.place(ctx)
	if err != nil {
		return nil, false, err
	}
	p, err := at.Objects.Tree(ctx, &storagepb.TreeRequest{Folder: at.Ref, Path: r.Path, After: after, Limit: uint32(most)})
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if err != nil {
		return nil, false, at.Later(errgrpc.ToNative(err))
	}
	r.top = r.Path
	if len(p.Files) == 1 && p.Files[0].Path == r.Path { // the exported path is a file
		r.top = strings.TrimSuffix(strings.TrimSuffix(r.Path, path.Base(r.Path)), "/")
	}
	return p.Files, p.More, nil
}

// file is a file to export.
type file struct {
	*storagepb.TreeFile
	key  string
	ours bool // an existing object may be from an earlier run of this task
	left bool // an equal object exists and is kept
	err  error
}

// page exports the files of a page: small ones in batches, large ones one by one.
func (r *sending) page(ctx context.Context, page []*storagepb.TreeFile) error {
	for len(page) > 0 {
		n := min(batchSize, len(page))
		if err := r.files(ctx, page[:n]); err != nil {
			return err
		}
		page = page[n:]
	}
	return nil
}

func (r *sending) files(ctx context.Context, page []*storagepb.TreeFile) error {
	var list []*file
	for _, f := range page {
		if r.st.has(f.Path) {
			continue
		}
		key := r.prefix + strings.TrimPrefix(strings.TrimPrefix(f.Path, r.top), "/")
		ours := r.st.Sent != "" && !before(r.st.Sent, f.Path)
		list = append(list, &file{TreeFile: f, key: key, ours: ours, err: refusedFile(key, f)})
	}
	if err := r.look(ctx, list); err != nil {
		return asked(err)
	}
	var small, large []*file
	for _, f := range list {
		switch {
		case f.err != nil || f.left:
			r.st.settled(f.Path, f.Size, f.left, f.err)
		case f.Size > partsAbove:
			large = append(large, f)
		default:
			small = append(small, f)
		}
		if r.st.Sent == "" || before(r.st.Sent, f.Path) {
			r.st.Sent = f.Path
		}
	}
	if err := r.batch(ctx, small); err != nil {
		return err
	}
	for _, f := range large {
		if err := r.large(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// refusedFile returns the reason why a file cannot become an object.
func refusedFile(key string, f *storagepb.TreeFile) error {
	switch {
	case len(key) > maxKey:
		return problem.Invalid("key", "the key would have %d bytes; S3 allows at most %d", len(key), maxKey)
	case folderpath.NewFault(f.Path) != "":
		return problem.Invalid("key", "its path %s", folderpath.NewFault(f.Path))
	case f.Size > maxObject:
		return problem.Invalid("size", "the file has %d bytes; S3 allows at most %d for an object", f.Size, int64(maxObject))
	}
	return nil
}

// unreadable explains why a listed file cannot be opened by its name: in the list, bytes that are
// not UTF-8 appear as U+FFFD.
func unreadable(path string, err error) error {
	if errdefs.IsNotFound(err) && strings.ContainsRune(path, utf8.RuneError) {
		return problem.Invalid("key", "the name of the file is not UTF-8, which S3 requires: rename the file")
	}
	return err
}

// lookers is the number of concurrent checks for existing objects.
const lookers = 16

// look finds existing objects, and decides which files to send.
func (r *sending) look(ctx context.Context, list []*file) error {
	if r.Existing == Overwrite {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(lookers)
	for _, f := range list {
		if f.err != nil {
			continue
		}
		g.Go(func() error {
			there, err := r.bucket.stat(ctx, f.key)
			if err != nil || there == nil {
				return err
			}
			// A storage reports whole seconds: a file that changed in the same second is sent.
			equal := there.size == f.Size && !there.modified.Before(time.Unix(0, f.ModifiedUnixNs))
			switch {
			case equal && (r.Existing == Update || f.ours):
				f.left = true
			case r.Existing == Fail && !f.ours:
				f.err = problem.Exists("key", "an object with this key already exists")
			}
			return nil
		})
	}
	return g.Wait()
}

// batch makes a proxy send small files.
func (r *sending) batch(ctx context.Context, list []*file) error {
	if len(list) == 0 {
		return nil
	}
	at, err := r.place(ctx)
	if err != nil {
		return err
	}
	if err := r.save(ctx, true, 0); err != nil {
		return err
	}
	q := &storagepb.ExportRequest{Folder: at.Ref}
	for _, f := range list {
		put, err := r.bucket.sign(ctx, http.MethodPut, f.key, life(batchSize*partsAbove), nil, nil)
		if err != nil {
			return asked(err)
		}
		q.Files = append(q.Files, &storagepb.FileItem{
			Path: f.Path, Put: put, Size: f.Size, ModifiedUnixNs: f.ModifiedUnixNs, Length: f.Size,
		})
	}
	call := func(ctx context.Context) (receiver, error) { return at.Objects.Export(ctx, q) }
	return r.follow(ctx, at, call, func(one *storagepb.ObjectResult, err error) error {
		f := list[one.Index]
		r.st.settled(f.Path, f.Size, false, unreadable(f.Path, err))
		return nil
	})
}
