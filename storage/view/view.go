// Package view shows people their folders by WebDAV and SFTP, to who shows an
// access token: a tree with a directory per folder. Whose folders a token opens a
// manager says; what is in them package volume resolves, files are written by
// package transfer, and package door lets SSH connections in. Package storage
// imports it.
package view

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// Manager knows people and what they may, and keeps the audit trail.
type Manager interface {
	List(context.Context, *storagepb.ListRequest) (*storagepb.ListResponse, error)
	Record(context.Context, *storagepb.RecordRequest) (*storagepb.RecordResponse, error)
}

// Config of views.
type Config struct {
	Volumes   *volume.Set
	Transfers *transfer.Server
	Manager   Manager
	Dir       string // keeps what no manager could be told
	// Prefix is the path below which people reach WebDAV, such as /storage/dav.
	Prefix string
	Logger *slog.Logger
}

// Views are the trees of all guests. Make it with New.
type Views struct {
	cfg      Config
	accounts *accounts
	trail    *trail
	locks    locks
	began    time.Time
}

// New returns views.
func New(cfg Config) *Views {
	v := &Views{cfg: cfg, began: time.Now(), trail: newTrail(cfg.Manager, cfg.Dir, cfg.Logger)}
	v.accounts = newAccounts(cfg.Manager, func(name string) bool {
		_, err := cfg.Volumes.Get(name)
		return err == nil
	})
	return v
}

// Run tells managers what people do, until the context ends and a last time then.
func (v *Views) Run(ctx context.Context) error {
	v.trail.run(ctx)
	return nil
}

// Forget has the rights of everyone looked at again.
func (v *Views) Forget() { v.accounts.forget() }
