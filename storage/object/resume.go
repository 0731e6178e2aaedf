package object

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
)

// note is stored with a checkpoint of an object, for a proxy that resumes the download.
type note struct {
	Etag string
	Size int64
	Sum  json.RawMessage `json:",omitempty"`
}

// stage resumes the download of a large object from the checkpoint of an earlier proxy, or
// begins a file. An object without an ETag may have changed in between, so it is downloaded
// again; an object that another call downloads to the same place at the same time is
// downloaded twice.
func (m *Mover) stage(ctx context.Context, g *download, at transfer.Place) (err error) {
	if g.item.Size > m.keepEvery && g.item.Etag != "" {
		g.draft, err = m.files.Resume(ctx, at, source(g.item), g.item.Size)
		if err == nil {
			g.every = m.keepEvery
			return g.resume()
		}
		if !errdefs.IsConflict(err) {
			return err
		}
	}
	g.draft, err = m.files.Stage(ctx, at, g.item.Size)
	return err
}

// source returns the address of an object without its signature.
func source(o *storagepb.ObjectItem) string {
	u, err := url.Parse(o.Get.GetUrl())
	if err != nil {
		return "" // the request will return the error
	}
	u.RawQuery = ""
	return u.String()
}

// resume continues from the checkpoint if it belongs to this very object. Otherwise it starts a
// new file.
func (g *download) resume() error {
	at, raw := g.draft.LastCheckpoint()
	var n note
	if at > 0 && json.Unmarshal(raw, &n) == nil && n.Etag == g.item.Etag && n.Size == g.item.Size {
		if s, err := sumFrom(n.Sum); err == nil {
			g.at, g.kept, g.sum = at, at, s
			g.work.bytes.Add(at)
			return nil
		}
	}
	err := g.draft.Truncate(0)
	if err == nil {
		err = g.keep()
	}
	if err != nil {
		g.draft.Discard()
	}
	return err
}

// keep stores the received bytes durably, so that they survive a restart of the proxy.
func (g *download) keep() error {
	state, err := g.sum.state()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(note{Etag: g.item.Etag, Size: g.item.Size, Sum: state})
	if err != nil {
		return err
	}
	if err := g.draft.Checkpoint(raw); err != nil {
		return err
	}
	g.kept = g.at
	return nil
}

// leave keeps the received bytes for a later call if a temporary condition ended this one: the
// storage is unreachable, or the proxy stops. Bytes of a cancelled call are not kept.
func (g *download) leave(err error) {
	if g.every > 0 && errdefs.IsUnavailable(err) && (g.at == g.kept || g.keep() == nil) {
		g.draft.Detach()
	}
}
