// Package view serves the folders of a user by WebDAV and SFTP, to clients with an access
// token: a tree with a directory for each folder. A manager decides which folders a token
// gives access to. Package volume resolves paths in folders, package transfer writes files,
// and package sshd accepts SSH connections. Package storage imports it.
package view

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// Manager authenticates users, returns their permissions, and records the audit log.
type Manager interface {
	List(context.Context, *storagepb.ListRequest) (*storagepb.ListResponse, error)
	Record(context.Context, *storagepb.RecordRequest) (*storagepb.RecordResponse, error)
}

// Config of views.
type Config struct {
	Volumes   *volume.Set
	Transfers *transfer.Server
	Manager   Manager
	Dir       string // stores the activity that no manager has recorded
	// Prefix is the path of WebDAV, such as /storage/dav.
	Prefix string
	Logger *slog.Logger
}

// Views serves the trees of all clients. New creates one.
type Views struct {
	cfg      Config
	accounts *accounts
	activity *activityLog
	locks    locks
	began    time.Time
}

// New returns views.
func New(cfg Config) *Views {
	v := &Views{cfg: cfg, began: time.Now(), activity: newActivityLog(cfg.Manager, cfg.Dir, cfg.Logger)}
	v.accounts = newAccounts(cfg.Manager, func(name string) bool {
		_, err := cfg.Volumes.Get(name)
		return err == nil
	})
	return v
}

// Run sends file activity to the managers until the context ends, and a last time then.
func (v *Views) Run(ctx context.Context) error {
	v.activity.run(ctx)
	return nil
}

// Forget drops the cached permissions of all clients.
func (v *Views) Forget() { v.accounts.forget() }
