package object

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

// Export uploads files of a folder, or parts of them, to an object storage.
func (m *Mover) Export(ctx context.Context, w *Work, f *volume.Folder, q *storagepb.ExportRequest) error {
	return w.each(ctx, len(q.Files), func(i int) (*storagepb.ObjectResult, error) {
		u := &upload{client: m.client, work: w, item: q.Files[i]}
		if err := u.open(f); err != nil {
			return &storagepb.ObjectResult{}, err
		}
		defer u.file.Close()
		err := persist(ctx, func() (bool, error) { return false, u.try(ctx) })
		return &storagepb.ObjectResult{Etag: u.etag}, err
	})
}

// upload is the upload of a file or of a part of one.
type upload struct {
	client *http.Client
	work   *Work
	item   *storagepb.FileItem
	file   *os.File
	etag   string
}

// open opens the file that was listed.
func (u *upload) open(f *volume.Folder) (err error) {
	if u.item.Offset < 0 || u.item.Length < 0 || u.item.Offset+u.item.Length > u.item.Size {
		return fmt.Errorf("%d bytes from %d of %d: %w", u.item.Length, u.item.Offset, u.item.Size, errdefs.ErrInvalidArgument)
	}
	if u.file, err = f.Open(u.item.Path); err != nil {
		return err
	}
	if err := u.same(); err != nil {
		return errors.Join(err, u.file.Close())
	}
	return nil
}

// same returns an error if the file differs from the one that was listed.
func (u *upload) same() error {
	info, err := u.file.Stat()
	if err != nil {
		return fmt.Errorf("stat the file: %w", err)
	}
	if info.Size() != u.item.Size || info.ModTime().UnixNano() != u.item.ModifiedUnixNs {
		return fmt.Errorf("the file has changed since it was listed: %w", errdefs.ErrFailedPrecondition)
	}
	return nil
}

// try uploads all bytes. The storage verifies the checksum, so it does not store damaged data.
func (u *upload) try(parent context.Context) error {
	part := func() *io.SectionReader { return io.NewSectionReader(u.file, u.item.Offset, u.item.Length) }
	sum := md5.New()
	if _, err := io.Copy(sum, &steady{ctx: parent, from: part()}); err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	dog := guard(cancel)
	defer dog.Stop()
	var sent int64
	body := &steady{ctx: ctx, from: part(), read: func(n int) {
		dog.alive()
		sent += int64(n)
		u.work.bytes.Add(int64(n))
	}}
	r, err := request(ctx, http.MethodPut, u.item.Put, body)
	if err != nil {
		return err
	}
	r.ContentLength = u.item.Length
	if u.item.Length == 0 {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	resp, err := do(u.client, r, http.StatusOK)
	if err == nil {
		u.etag = strings.Trim(resp.Header.Get("ETag"), `"`)
		resp.Body.Close()
	} else {
		u.work.bytes.Add(-sent)
	}
	if changed := u.same(); changed != nil {
		return changed
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// steady is a reader that returns an error after its context has ended.
type steady struct {
	ctx  context.Context
	from io.Reader
	read func(n int)
}

func (s *steady) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.from.Read(p)
	if s.read != nil {
		s.read(n)
	}
	return n, err
}
