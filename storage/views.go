package storage

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/storage/door"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/view"
	"github.com/berthhq/berth/storage/volume"
)

// newViews are the views of folders on the volumes.
func newViews(cfg Config, set *volume.Set, data *transfer.Server, ask view.Ask) (*view.Views, error) {
	u, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("storage: public URL: %w", err)
	}
	if cfg.Ask != nil {
		ask = cfg.Ask
	}
	return view.New(view.Config{
		Volumes: set, Transfers: data, Ask: ask, Prefix: strings.TrimSuffix(u.Path, "/") + view.Path, Logger: cfg.Logger,
	}), nil
}

// newDoor is where people come in by SFTP; nil where they do not.
func newDoor(cfg Config, views *view.Views, log *slog.Logger) (*door.Door, error) {
	if cfg.SFTP == nil {
		return nil, nil
	}
	d, err := door.New(door.Config{Dir: cfg.Dir, Password: views.EnterByToken, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("storage: SFTP: %w", err)
	}
	return d, nil
}

// ask asks the managers in turn what a token opens.
func (p *Proxy) ask(ctx context.Context, q *storagepb.ListRequest) (*storagepb.ListResponse, error) {
	err := fmt.Errorf("no manager is there to ask: %w", errdefs.ErrUnavailable)
	if p.node == nil {
		return nil, err
	}
	for _, c := range p.node.Clients() {
		r, asked := storagepb.NewFoldersClient(c).List(ctx, q)
		if asked == nil {
			return r, nil
		}
		if err = errgrpc.ToNative(asked); errdefs.IsUnauthorized(err) {
			return nil, err
		}
	}
	return nil, err
}
