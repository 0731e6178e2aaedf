package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// Import downloads objects into a folder.
func (m *Mover) Import(ctx context.Context, w *Work, f *volume.Folder, q *storagepb.ImportRequest) error {
	return w.each(ctx, len(q.Objects), func(i int) (*storagepb.ObjectResult, error) {
		left, err := m.bring(ctx, w, f, q, q.Objects[i])
		return &storagepb.ObjectResult{Left: left}, err
	})
}

// bring writes one object to a file, unless an equal file exists.
func (m *Mover) bring(ctx context.Context, w *Work, f *volume.Folder, q *storagepb.ImportRequest, o *storagepb.ObjectItem) (left bool, err error) {
	if o.Directory {
		_, err := f.MakeDirectory(o.Path)
		return false, err
	}
	path, err := volume.CleanNew(o.Path)
	if err != nil {
		return false, err
	}
	there, err := f.Stat(path)
	switch {
	case errdefs.IsNotFound(err):
	case err != nil:
		return false, err
	default:
		if err := admits(&there, o); err != nil {
			return errors.Is(err, errEqual), notEqual(err)
		}
	}
	g := &download{client: m.client, work: w, item: o}
	if err := m.stage(ctx, g, transfer.Place{Volume: q.Folder.GetVolume(), Scope: q.Folder.GetScope(), Folder: q.Folder.GetFolder(), Path: path, Parents: true}); err != nil {
		return false, err
	}
	d := g.draft
	defer d.Discard()
	if err := persist(ctx, func() (bool, error) { return g.try(ctx) }); err != nil {
		g.leave(err)
		return false, err
	}
	modified := time.UnixMilli(o.ModifiedUnixMs)
	d.Set(volume.Attributes{Modified: &modified})
	err = d.Publish(func(there *volume.Entry) error { return admits(there, o) })
	return errors.Is(err, errEqual), notEqual(err)
}

// errEqual reports that an equal file exists, so the object is not downloaded.
var errEqual = errors.New("an equal file exists")

func notEqual(err error) error {
	if errors.Is(err, errEqual) {
		return nil
	}
	return err
}

// admits reports whether an object can replace the existing file.
func admits(there *volume.Entry, o *storagepb.ObjectItem) error {
	if there == nil {
		return nil
	}
	kind := there.Mode & unix.S_IFMT
	if kind == unix.S_IFDIR {
		return fmt.Errorf("a directory exists there: %w", errdefs.ErrFailedPrecondition)
	}
	equal := kind == unix.S_IFREG && there.Size == o.Size && there.Modified.UnixMilli() == o.ModifiedUnixMs
	switch o.Existing {
	case storagepb.ObjectItem_OVERWRITE:
		return nil
	case storagepb.ObjectItem_FAIL:
		return fmt.Errorf("a file exists there: %w", errdefs.ErrAlreadyExists)
	case storagepb.ObjectItem_RESUME:
		if !equal {
			return fmt.Errorf("a file exists there: %w", errdefs.ErrAlreadyExists)
		}
	}
	if equal {
		return errEqual
	}
	return nil
}

// download is the download of one object.
type download struct {
	client *http.Client
	work   *Work
	item   *storagepb.ObjectItem
	draft  *transfer.StagedFile
	at     int64 // bytes that have arrived
	sum    *sum
	every  int64 // checkpoint after this many bytes; 0 = never
	kept   int64 // bytes that survive a restart of the proxy
}

// try downloads the missing bytes, and reports whether it received any.
func (g *download) try(parent context.Context) (further bool, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	dog := guard(cancel)
	defer dog.Stop()
	before := g.at
	resp, err := g.ask(ctx)
	if err == nil {
		err = g.copy(resp.Body, dog)
		resp.Body.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	further = g.at > before
	if err == nil && g.at < g.item.Size {
		err = &passing{error: fmt.Errorf("the connection ended %d bytes before the object's end", g.item.Size-g.at)}
	}
	if err == nil {
		err = g.sum.check()
	}
	if errors.Is(err, errChecksum) { // the bytes must be downloaded again
		err = errors.Join(g.restart(), &passing{error: err})
		further = false
	}
	return further, err
}

// ask requests the object from the current offset on.
func (g *download) ask(ctx context.Context) (*http.Response, error) {
	r, err := request(ctx, http.MethodGet, g.item.Get, nil)
	if err != nil {
		return nil, err
	}
	if g.item.Etag != "" {
		r.Header.Set("If-Match", strconv.Quote(g.item.Etag))
	}
	want := http.StatusOK
	if g.at > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", g.at))
		want = http.StatusPartialContent
	}
	resp, err := do(g.client, r, want, http.StatusOK)
	if err != nil {
		return nil, err
	}
	if g.at > 0 && resp.StatusCode == http.StatusOK { // the storage does not support ranges
		if err := g.restart(); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	if err := g.same(resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	if g.at == 0 {
		g.sum = sumOf(resp.Header, g.item.Etag)
	}
	return resp, nil
}

// same returns an error if the object differs from the one that was listed.
func (g *download) same(resp *http.Response) error {
	etag := strings.Trim(resp.Header.Get("ETag"), `"`)
	if g.item.Etag != "" && etag != "" && etag != g.item.Etag {
		return fmt.Errorf("the object has changed since it was listed: %w", errdefs.ErrFailedPrecondition)
	}
	if n := resp.ContentLength; n >= 0 && g.at+n != g.item.Size {
		return fmt.Errorf("the object has %d bytes, it was listed with %d: %w", g.at+n, g.item.Size, errdefs.ErrFailedPrecondition)
	}
	if resp.StatusCode != http.StatusPartialContent {
		return nil
	}
	if begins := fmt.Sprintf("bytes %d-", g.at); !strings.HasPrefix(resp.Header.Get("Content-Range"), begins) {
		return fmt.Errorf("the object storage sends other bytes than those that were requested: %w", errdefs.ErrInvalidArgument)
	}
	return nil
}

func (g *download) copy(from io.Reader, dog watchdog) error {
	buf := make([]byte, 256<<10)
	for {
		n, rerr := from.Read(buf)
		dog.alive()
		if int64(n) > g.item.Size-g.at {
			return fmt.Errorf("the object is longer than the %d bytes that it was listed with: %w", g.item.Size, errdefs.ErrFailedPrecondition)
		}
		if n > 0 {
			if _, err := g.draft.WriteAt(buf[:n], g.at); err != nil {
				return err
			}
			if g.sum != nil {
				g.sum.Write(buf[:n])
			}
			g.at += int64(n)
			g.work.bytes.Add(int64(n))
			if g.every > 0 && g.at-g.kept >= g.every {
				if err := g.keep(); err != nil {
					return err
				}
				dog.alive()
			}
		}
		if errors.Is(rerr, io.EOF) {
			return nil
		}
		if rerr != nil {
			return broken("receive the object", rerr)
		}
	}
}

// restart drops the bytes that have arrived.
func (g *download) restart() error {
	g.work.bytes.Add(-g.at)
	g.at, g.sum = 0, nil
	if err := g.draft.Truncate(0); err != nil || g.kept == 0 {
		return err
	}
	return g.keep()
}
