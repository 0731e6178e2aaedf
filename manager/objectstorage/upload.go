package objectstorage

import (
	"context"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/internal/problem"
)

// upload is a multipart upload in a storage until it is completed or aborted. If its id was
// lost in a crash, the upload is the one of its key that was begun at about the intended time
// and did not exist before.
type upload struct {
	Key, ID  string
	Intended time.Time `json:",omitzero"`
	Others   []string  `json:",omitempty"` // ids of other uploads of the key
}

// leeway is the tolerated difference between the intended and the reported start of an upload:
// signatures are valid with clocks that differ by 15 minutes, and the request takes some time.
const leeway = 20 * time.Minute

// may reports whether an upload of the key can be the intended one.
func (up upload) may(u minio.ObjectMultipartInfo) bool {
	return u.Initiated.Sub(up.Intended).Abs() < leeway && !slices.Contains(up.Others, u.UploadID)
}

// intend returns an upload that is about to begin.
func (b *bucket) intend(ctx context.Context, key string) (upload, error) {
	up := upload{Key: key, Intended: time.Now().UTC()}
	there, err := b.uploads(ctx, key)
	for _, u := range there {
		up.Others = append(up.Others, u.UploadID)
	}
	if p, known := problem.From(err); known && p.Code != problem.CodeUnavailable {
		err = nil // without permission to list, it cannot be found again either
	}
	return up, err
}

// uploads returns the multipart uploads of a key.
func (b *bucket) uploads(ctx context.Context, key string) (list []minio.ObjectMultipartInfo, err error) {
	for after, id := "", ""; ; {
		page, err := b.core.ListMultipartUploads(ctx, b.name, key, after, id, "", 1000)
		if err != nil {
			return nil, explain(err)
		}
		for _, u := range page.Uploads {
			if u.Key == key {
				list = append(list, u)
			}
		}
		// Longer keys come after all uploads of this one.
		if !page.IsTruncated || page.NextKeyMarker != key || page.NextUploadIDMarker == id {
			return list, nil
		}
		after, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// abort aborts an upload; an unknown upload counts as aborted.
func (b *bucket) abort(ctx context.Context, up upload) error {
	ids := []string{up.ID}
	if up.ID == "" {
		there, err := b.uploads(ctx, up.Key)
		if err != nil {
			return err
		}
		ids = nil
		for _, u := range there {
			if up.may(u) {
				ids = append(ids, u.UploadID)
			}
		}
	}
	for _, id := range ids {
		if err := b.core.AbortMultipartUpload(ctx, b.name, up.Key, id); err != nil && !forgotten(err) {
			return explain(err)
		}
	}
	return nil
}

func forgotten(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchUpload }
