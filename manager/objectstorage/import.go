package objectstorage

import (
	"context"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	tasks "github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/storage/storagepb"
)

// importer runs the tasks that import into folders.
type importer struct{ *Service }

func (i importer) Run(ctx context.Context, at *tasks.Progress, input []byte) error {
	r, err := i.begin(ctx, at, input, true)
	if err != nil {
		return err
	}
	defer i.folders.Changed(context.WithoutCancel(ctx), r.Folder)
	return r.end(ctx, (&fetching{run: r}).all(ctx))
}

// fetching is a running import.
type fetching struct {
	*run
	single *object // the object at the path itself
}

func (r *fetching) all(ctx context.Context) error {
	if err := r.find(ctx); err != nil {
		return asked(err)
	}
	return walk[object]{
		run: r.run, list: r.list, move: r.page, verb: "imported",
		at: func(o object) (string, int64) { return o.key, o.size },
	}.all(ctx)
}

// find checks whether the path is that of one object.
func (r *fetching) find(ctx context.Context) error {
	if r.Below == "" {
		return nil
	}
	page, _, err := r.bucket.list(r.prefix, "", 1)
	if err != nil || len(page) > 0 {
		return err
	}
	o, err := r.bucket.stat(ctx, strings.TrimSuffix(r.prefix, "/"))
	if err != nil {
		return err
	}
	if o == nil {
		return problem.Precondition("there is no object at or below %.80s", r.Below)
	}
	r.single, r.prefix = o, strings.TrimSuffix(o.key, path.Base(o.key))
	return nil
}

func (r *fetching) list(_ context.Context, after string, most int) ([]object, bool, error) {
	if r.single == nil {
		page, more, err := r.bucket.list(r.prefix, after, most)
		return page, more, asked(err)
	}
	if after >= r.single.key {
		return nil, false, nil
	}
	return []object{*r.single}, false, nil
}

// page imports the objects of a page, in batches.
func (r *fetching) page(ctx context.Context, page []object) error {
	var b batch
	flush := func() error {
		full := b
		b = batch{}
		if len(full.list) == 0 {
			return nil
		}
		return r.batch(ctx, full)
	}
	for _, o := range page {
		switch why := r.refused(o); {
		case r.st.has(o.key):
			continue
		case why != nil || o.key == r.prefix: // the marker object of the directory itself
			r.st.settled(o.key, o.size, true, why)
			continue
		}
		if b.full() || b.above(o.key) {
			if err := flush(); err != nil {
				return err
			}
		}
		b.add(o)
	}
	return flush()
}

// batch is the objects of one call to a proxy.
type batch struct {
	list  []object
	bytes int64
	keys  map[string]bool
}

func (b *batch) full() bool { return len(b.list) >= batchSize || b.bytes >= batchBytes }

// above reports whether an object of the batch has the path of a directory that another key needs.
// The shorter key comes first, so the longer one is always the one that is rejected.
func (b *batch) above(key string) bool {
	for i := range len(key) {
		if key[i] == '/' && b.keys[key[:i]] {
			return true
		}
	}
	return false
}

func (b *batch) add(o object) {
	if b.keys == nil {
		b.keys = map[string]bool{}
	}
	b.list, b.bytes, b.keys[o.key] = append(b.list, o), b.bytes+o.size, true
}

// refused returns the reason why an object cannot become a file.
func (r *fetching) refused(o object) error {
	name, marker := strings.CutSuffix(strings.TrimPrefix(o.key, r.prefix), "/")
	if marker && o.size > 0 {
		return problem.Invalid("key", "ends in a slash and holds %d bytes", o.size)
	}
	if o.key == r.prefix {
		return nil
	}
	if why := folderpath.NewFault(name); why != "" {
		return problem.Invalid("key", "the key %s", why)
	}
	return nil
}

// batch makes a proxy import objects.
func (r *fetching) batch(ctx context.Context, b batch) error {
	at, err := r.place(ctx)
	if err != nil {
		return err
	}
	ours := r.st.Sent
	q := &storagepb.ImportRequest{Folder: at.Ref}
	for _, o := range b.list {
		item, err := r.item(ctx, o, o.key <= ours, life(b.bytes))
		if err != nil {
			return asked(err)
		}
		q.Objects = append(q.Objects, item)
		r.st.Sent = max(r.st.Sent, o.key)
	}
	if err := r.save(ctx, true, 0); err != nil {
		return err
	}
	call := func(ctx context.Context) (receiver, error) { return at.Objects.Import(ctx, q) }
	return r.follow(ctx, at, call, func(one *storagepb.ObjectResult, err error) error {
		o := b.list[one.Index]
		r.st.settled(o.key, o.size, one.Left, err)
		return nil
	})
}

// item describes an object for a proxy. An existing file may be from an earlier run of this task.
func (r *fetching) item(ctx context.Context, o object, ours bool, life time.Duration) (*storagepb.ObjectItem, error) {
	name, marker := strings.CutSuffix(strings.TrimPrefix(o.key, r.prefix), "/")
	item := &storagepb.ObjectItem{
		Path: path.Join(r.Path, name), Directory: marker, Size: o.size, Etag: o.etag, ModifiedUnixMs: o.modified.UnixMilli(),
	}
	switch {
	case r.Existing == Overwrite:
		item.Existing = storagepb.ObjectItem_OVERWRITE
	case r.Existing == Fail && ours:
		item.Existing = storagepb.ObjectItem_RESUME
	case r.Existing == Fail:
		item.Existing = storagepb.ObjectItem_FAIL
	}
	if marker {
		return item, nil
	}
	var err error
	item.Get, err = r.bucket.sign(ctx, http.MethodGet, o.key, life, nil, http.Header{"X-Amz-Checksum-Mode": {"ENABLED"}})
	return item, err
}
