package objectstorage

import (
	"context"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/internal/problem"
)

// upload is what a storage keeps of an object that is sent in parts, until it is
// completed or aborted. No one may have lived to hear its id: then it is one of its
// key's that was begun about when it was intended to and was not there before.
type upload struct {
	Key, ID  string
	Intended time.Time `json:",omitzero"`
	Others   []string  `json:",omitempty"` // ids of uploads of the key that are not ours
}

// leeway is by how much the time of an upload's beginning may differ from when it was
// intended: clocks of which signatures are valid do so by 15 minutes, and asking takes
// some.
const leeway = 20 * time.Minute

// may reports whether what a storage has of the key can be the upload that was intended.
func (up upload) may(u minio.ObjectMultipartInfo) bool {
	return u.Initiated.Sub(up.Intended).Abs() < leeway && !slices.Contains(up.Others, u.UploadID)
}

// intend is an upload that is about to begin.
func (b *bucket) intend(ctx context.Context, key string) (upload, error) {
	up := upload{Key: key, Intended: time.Now().UTC()}
	there, err := b.uploads(ctx, key)
	for _, u := range there {
		up.Others = append(up.Others, u.UploadID)
	}
	if p, known := problem.From(err); known && p.Code != problem.CodeUnavailable {
		err = nil // who may not list cannot find it again either
	}
	return up, err
}

// uploads are those of a key.
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
		// Those of longer keys come after all of this one.
		if !page.IsTruncated || page.NextKeyMarker != key || page.NextUploadIDMarker == id {
			return list, nil
		}
		after, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// abort has the storage forget an upload; one that it does not know is done.
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
