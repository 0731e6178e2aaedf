package object

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
)

// note is what is kept with the bytes of an object that are here, for a proxy that goes
// on with them.
type note struct {
	Etag string
	Size int64
	Sum  json.RawMessage `json:",omitempty"`
}

// stage finds what an earlier proxy has left of an object, if that is large enough to
// continue with it, or begins a file. An object without an ETag may be another the next
// time, and one that someone else brings here at the same time is brought twice.
func (m *Mover) stage(ctx context.Context, g *download, at transfer.Place) (err error) {
	if g.item.Size > m.keepEvery && g.item.Etag != "" {
		g.draft, err = m.files.Resume(ctx, at, source(g.item), g.item.Size)
		if err == nil {
			g.every = m.keepEvery
			return g.goOn()
		}
		if !errdefs.IsConflict(err) {
			return err
		}
	}
	g.draft, err = m.files.Draft(ctx, at, g.item.Size)
	return err
}

// source is the address of an object without its signature.
func source(o *storagepb.ObjectItem) string {
	u, err := url.Parse(o.Get.GetUrl())
	if err != nil {
		return "" // it is refused when it is asked
	}
	u.RawQuery = ""
	return u.String()
}

// goOn takes what was kept, if it is of this very object, and marks a new file as one
// of it.
func (g *download) goOn() error {
	at, raw := g.draft.Kept()
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

// keep makes sure that what is here outlives the proxy.
func (g *download) keep() error {
	state, err := g.sum.state()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(note{Etag: g.item.Etag, Size: g.item.Size, Sum: state})
	if err != nil {
		return err
	}
	if err := g.draft.Keep(raw); err != nil {
		return err
	}
	g.kept = g.at
	return nil
}

// leave lets a later call continue with what came, if it was ended by what passes: the
// storage is away, or the proxy stops. What its caller has given up is not kept.
func (g *download) leave(err error) {
	if g.every > 0 && errdefs.IsUnavailable(err) && (g.at == g.kept || g.keep() == nil) {
		g.draft.Leave()
	}
}
