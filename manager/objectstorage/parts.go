package objectstorage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/storagepb"
)

// S3 accepts at most 10,000 parts of an object; all but the last have 5 MiB to 5 GiB.
const (
	partsAbove = 64 << 20 // a larger file is sent in parts, of at least this size
	maxParts   = 10_000
	maxObject  = 5 << 40
	partsBatch = 32 // per call to a proxy
)

// partSize returns the size of a file's parts, in whole mebibytes.
func partSize(size int64) int64 {
	least := (size + maxParts - 1) / maxParts
	return max(partsAbove, (least+(1<<20)-1)&^(1<<20-1))
}

// parts is the multipart upload of a file.
type parts struct {
	upload
	Path           string
	Size, Modified int64 // of the file
	Part           int64 // size of one
	Done           []donePart
}

type donePart struct {
	Number int // from 1
	Etag   string
}

func (p *parts) of(f *file) bool {
	return p.Path == f.Path && p.Key == f.key && p.Size == f.Size && p.Modified == f.ModifiedUnixNs
}

// section returns the offset and the length of a part in the file.
func (p *parts) section(number int) (offset, length int64) {
	offset = int64(number-1) * p.Part
	return offset, min(p.Part, p.Size-offset)
}

// sent returns the number of bytes that have been sent.
func (p *parts) sent() (bytes int64) {
	for _, d := range p.Done {
		_, n := p.section(d.Number)
		bytes += n
	}
	return bytes
}

// missing returns the next parts to send.
func (p *parts) missing() (numbers []int) {
	done := map[int]bool{}
	for _, d := range p.Done {
		done[d.Number] = true
	}
	for n := 1; int64(n-1)*p.Part < p.Size && len(numbers) < partsBatch; n++ {
		if !done[n] {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// large sends a file in parts, and continues the upload of an earlier run.
func (r *sending) large(ctx context.Context, f *file) error {
	if up := r.st.Upload; up != nil && (up.ID == "" || !up.of(f)) {
		if err := r.takeBack(ctx); err != nil {
			return err
		}
	}
	for range 2 { // the storage may have dropped the upload
		err := r.send(ctx, f)
		var own *ofItem
		switch {
		case errors.As(err, &own):
			r.drop(ctx)
			r.st.settled(f.Path, f.Size, false, unreadable(f.Path, own.error))
			return nil
		case !errdefs.IsAborted(err):
			return err
		}
		r.st.Upload = nil
	}
	r.st.settled(f.Path, f.Size, false, problem.Aborted("the storage has lost the uploaded parts"))
	return nil
}

// ofItem is an error of one file, which does not stop the task.
type ofItem struct{ error }

func (o *ofItem) Unwrap() error { return o.error }

func (r *sending) send(ctx context.Context, f *file) error {
	if r.st.Upload == nil {
		if err := r.start(ctx, f); err != nil {
			return err
		}
	}
	up := r.st.Upload
	for numbers := up.missing(); len(numbers) > 0; numbers = up.missing() {
		if err := r.some(ctx, f, numbers); err != nil {
			return err
		}
	}
	slices.SortFunc(up.Done, func(a, b donePart) int { return a.Number - b.Number })
	list := make([]minio.CompletePart, len(up.Done))
	for i, d := range up.Done {
		list[i] = minio.CompletePart{PartNumber: d.Number, ETag: d.Etag}
	}
	_, err := r.bucket.core.CompleteMultipartUpload(ctx, r.bucket.name, up.Key, up.ID, list, minio.PutObjectOptions{})
	if forgotten(err) {
		// An earlier run may have completed the upload without recording it.
		there, serr := r.bucket.stat(ctx, up.Key)
		if serr != nil {
			return asked(serr)
		}
		if there == nil || there.size != up.Size {
			return fmt.Errorf("complete %.80s: %w", up.Path, errdefs.ErrAborted)
		}
		err = nil
	}
	if err != nil {
		return r.sorted(explain(err))
	}
	r.st.Upload = nil
	r.st.settled(f.Path, f.Size, false, nil)
	return r.save(ctx, true, 0)
}

// sorted separates errors of one file from those that stop the task.
func (r *sending) sorted(err error) error {
	err = asked(err)
	var away *storageAway
	if errors.As(err, &away) || errors.Is(err, context.Canceled) {
		return err
	}
	return &ofItem{err}
}

// start begins a multipart upload. The intention is stored before the request, so that the
// upload can be found after a crash.
func (r *sending) start(ctx context.Context, f *file) error {
	b, err := r.open(ctx, r.row, once) // a second attempt would be a second upload
	if err != nil {
		return err
	}
	up, err := b.intend(ctx, f.key)
	if err != nil {
		return r.sorted(err)
	}
	r.st.Upload = &parts{upload: up, Path: f.Path, Size: f.Size, Modified: f.ModifiedUnixNs, Part: partSize(f.Size)}
	if err := r.save(ctx, true, 0); err != nil {
		return err
	}
	id, err := b.core.NewMultipartUpload(ctx, b.name, f.key, minio.PutObjectOptions{})
	if err != nil {
		return r.sorted(explain(err))
	}
	r.st.Upload.upload = upload{Key: f.key, ID: id}
	return r.save(ctx, true, 0)
}

// some makes a proxy send some parts.
func (r *sending) some(ctx context.Context, f *file, numbers []int) error {
	at, err := r.place(ctx)
	if err != nil {
		return err
	}
	up := r.st.Upload
	r.base = up.sent()
	defer func() { r.base = 0 }()
	q := &storagepb.ExportRequest{Folder: at.Ref}
	for _, n := range numbers {
		query := url.Values{"uploadId": {up.ID}, "partNumber": {strconv.Itoa(n)}}
		put, err := r.bucket.sign(ctx, http.MethodPut, up.Key, life(partsBatch*up.Part), query, nil)
		if err != nil {
			return asked(err)
		}
		offset, length := up.section(n)
		q.Files = append(q.Files, &storagepb.FileItem{
			Path: f.Path, Put: put, Size: up.Size, ModifiedUnixNs: up.Modified, Offset: offset, Length: length,
		})
	}
	call := func(ctx context.Context) (receiver, error) { return at.Objects.Export(ctx, q) }
	return r.follow(ctx, at, call, func(one *storagepb.ObjectResult, err error) error {
		if errdefs.IsAborted(err) {
			return err
		}
		if err != nil {
			return &ofItem{err}
		}
		r.st.Stuck = nil
		up.Done = append(up.Done, donePart{numbers[one.Index], one.Etag})
		return nil
	})
}

// takeBack aborts a multipart upload, or waits until the storage can be reached.
func (r *sending) takeBack(ctx context.Context) error {
	err := asked(r.forget(ctx))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var away *storageAway
	if errors.As(err, &away) {
		return err
	}
	r.st.Upload = nil
	return r.save(ctx, true, 0)
}

// drop is takeBack at the end of a run.
func (r *sending) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = r.forget(ctx) // the error is reported there
	r.st.Upload = nil
}

func (r *sending) forget(ctx context.Context) error {
	up := r.st.Upload
	if up == nil {
		return nil
	}
	b, err := r.open(ctx, r.row, inTask)
	if err == nil {
		err = b.abort(ctx, up.upload)
	}
	if err != nil {
		r.log.WarnContext(ctx, "parts of an object may stay at its storage", "storage", r.row.ID, "key", fmt.Sprintf("%.80s", up.Key), "upload", up.ID, "error", err)
	}
	return err
}
