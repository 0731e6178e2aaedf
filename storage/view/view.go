// Package view shows people their folders by WebDAV and SFTP, to who shows an
// access token: a tree with a directory per folder. Whose folders a token opens a
// manager says; what is in them package volume resolves, files are written by
// package transfer, and package door lets SSH connections in. Package storage
// imports it.
package view

import (
	"log/slog"
	"time"

	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// Config of views.
type Config struct {
	Volumes   *volume.Set
	Transfers *transfer.Server
	Ask       Ask
	// Prefix is the path below which people reach WebDAV, such as /storage/dav.
	Prefix string
	Logger *slog.Logger
}

// Views are the trees of all guests. Make it with New.
type Views struct {
	cfg      Config
	accounts *accounts
	locks    locks
	began    time.Time
}

// New returns views.
func New(cfg Config) *Views {
	v := &Views{cfg: cfg, began: time.Now()}
	v.accounts = newAccounts(cfg.Ask, func(name string) bool {
		_, err := cfg.Volumes.Get(name)
		return err == nil
	})
	return v
}

// Forget has the rights of everybody looked at again.
func (v *Views) Forget() { v.accounts.forget() }
