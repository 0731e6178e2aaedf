package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/berthhq/berth/internal/registry/store"
)

func (r *Registry) getBlob(w http.ResponseWriter, req *http.Request, at place, a access) error {
	d, err := store.ParseDigest(at.name)
	if err != nil {
		return err
	}
	if a.grant != nil {
		if _, err := r.store.Use(at.repository, d); err != nil {
			return err
		}
	}
	f, err := r.store.Blob(at.repository, d)
	if err != nil {
		return err
	}
	defer f.Close()
	h := w.Header()
	h.Set("Docker-Content-Digest", d.String())
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Etag", `"`+d.String()+`"`)
	h.Set("Cache-Control", "max-age=31536000")
	http.ServeContent(w, req, "", time.Time{}, f)
	return nil
}

func (r *Registry) deleteBlob(w http.ResponseWriter, _ *http.Request, at place, _ access) error {
	d, err := store.ParseDigest(at.name)
	if err != nil {
		return err
	}
	if err := r.store.DeleteBlob(at.repository, d); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// startUpload begins an upload, mounts a blob of another repository, or stores a blob that is the body.
func (r *Registry) startUpload(w http.ResponseWriter, req *http.Request, at place, a access) error {
	q := req.URL.Query()
	if at.name != "" {
		return &refusal{http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "an upload begins at its repository"}
	}
	if text := q.Get("mount"); text != "" {
		d, err := store.ParseDigest(text)
		if err != nil {
			return err
		}
		done, err := r.mount(at.repository, q.Get("from"), d, a)
		if err != nil {
			return err
		}
		if done {
			created(w, at.repository, d)
			return nil
		}
	}
	id, err := r.store.StartUpload(at.repository)
	if err != nil {
		return err
	}
	at.name = id
	if q.Get("digest") != "" {
		return r.putUpload(w, req, at, a)
	}
	position(w, at, 0)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// mount adds a blob of a repository that the client can read. A digest alone gives no user the bytes of
// others, so without a source only the client's own repositories count.
func (r *Registry) mount(to, from string, d digest.Digest, a access) (bool, error) {
	sources := []string{from}
	if from == "" {
		sources = []string{to}
		err := r.store.Repositories(func(name string) error {
			if a.source(name) {
				sources = append(sources, name)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	for _, s := range sources {
		if !store.ValidRepository(s) || s != to && !a.source(s) {
			continue
		}
		err := r.store.Mount(to, s, d)
		if err == nil {
			return true, nil
		}
		if !errdefs.IsNotFound(err) {
			return false, err
		}
	}
	return false, nil
}

func (r *Registry) getUpload(w http.ResponseWriter, _ *http.Request, at place, _ access) error {
	size, err := r.store.UploadSize(at.repository, at.name)
	if err != nil {
		return err
	}
	position(w, at, size)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (r *Registry) patchUpload(w http.ResponseWriter, req *http.Request, at place, a access) error {
	size, err := r.append(req, at, a)
	if err != nil {
		return err
	}
	position(w, at, size)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// append adds the body of a request to an upload.
func (r *Registry) append(req *http.Request, at place, a access) (int64, error) {
	from := int64(-1)
	if text := req.Header.Get("Content-Range"); text != "" {
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "-")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil || n < 0 {
			return 0, &refusal{http.StatusBadRequest, "BLOB_UPLOAD_INVALID", fmt.Sprintf("Content-Range %.100q is not FIRST-LAST", text)}
		}
		from = n
	}
	left, err := r.left(at, a)
	if err != nil {
		return 0, err
	}
	size, err := r.store.Append(req.Context(), at.repository, at.name, req.Body, from, left)
	if errors.Is(err, store.ErrTooLarge) {
		return 0, r.exceeded(a)
	}
	return size, err
}

// left returns the bytes that a client can add to a repository.
func (r *Registry) left(at place, a access) (int64, error) {
	if a.grant == nil || a.grant.Quota == nil || a.grant.Quota.Blobs == 0 {
		return r.spent.left(a), nil
	}
	q := a.grant.Quota
	n, used, err := r.store.Usage(at.repository)
	if err != nil {
		return 0, err
	}
	if n >= q.Blobs || used >= q.Max {
		return 0, errors.Join(&refusal{http.StatusForbidden, "DENIED", fmt.Sprintf("%s has %d blobs of at most %d, with %d bytes of at most %d", q.Of, n, q.Blobs, used, q.Max)},
			r.store.Cancel(at.repository, at.name))
	}
	return q.Max - used, nil
}

// exceeded is the answer to a push for which the quota has no room.
func (r *Registry) exceeded(a access) error {
	if a.grant == nil || a.grant.Quota == nil {
		return &refusal{http.StatusRequestEntityTooLarge, "SIZE_INVALID", fmt.Sprintf("a blob can have at most %d bytes", int64(maxLayer))}
	}
	return &refusal{http.StatusForbidden, "DENIED", r.spent.refusal(a)}
}

// putUpload ends an upload, after the bytes of the body.
func (r *Registry) putUpload(w http.ResponseWriter, req *http.Request, at place, a access) error {
	d, err := store.ParseDigest(req.URL.Query().Get("digest"))
	if err != nil {
		return errors.Join(err, r.store.Cancel(at.repository, at.name))
	}
	size, err := r.append(req, at, a)
	if err != nil {
		return err
	}
	if !r.spent.spend(a, size) {
		return errors.Join(r.exceeded(a), r.store.Cancel(at.repository, at.name))
	}
	if err := r.store.Finish(at.repository, at.name, d); err != nil {
		return err
	}
	created(w, at.repository, d)
	return nil
}

func (r *Registry) cancelUpload(w http.ResponseWriter, _ *http.Request, at place, _ access) error {
	if err := r.store.Cancel(at.repository, at.name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// position says where the next bytes of an upload begin.
func position(w http.ResponseWriter, at place, size int64) {
	h := w.Header()
	h.Set("Location", "/v2/"+at.repository+"/blobs/uploads/"+at.name)
	h.Set("Docker-Upload-UUID", at.name)
	h.Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
}

func created(w http.ResponseWriter, repository string, d digest.Digest) {
	h := w.Header()
	h.Set("Location", "/v2/"+repository+"/blobs/"+d.String())
	h.Set("Docker-Content-Digest", d.String())
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
}
