package sshproxy

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/sshserver"
)

// personKey is the key of the Person in the permissions of a connection.
type personKey struct{}

// config returns the SSH configuration of a connection, with its login methods.
func (px *Proxy) config(ctx context.Context, from string) *ssh.ServerConfig {
	c := sshserver.Config(px.cfg.HostKeys)
	c.PasswordCallback = func(who ssh.ConnMetadata, token []byte) (*ssh.Permissions, error) {
		if px.guard.Blocked(from, who.User(), time.Now()) {
			px.cfg.Metrics.login("limit")
			return nil, fmt.Errorf("too many wrong passwords: %w", errdefs.ErrPermissionDenied)
		}
		p, err := px.cfg.Accounts.Token(ctx, caller(who), string(token))
		if errdefs.IsUnauthorized(err) {
			px.guard.Failed(from, who.User(), time.Now())
		} else if err == nil {
			px.guard.LoggedIn(from, who.User())
		}
		return px.permissions(p, err)
	}
	c.PublicKeyCallback = func(who ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		p, err := px.cfg.Accounts.Key(ctx, caller(who), key)
		return px.permissions(p, err)
	}
	return c
}

func caller(who ssh.ConnMetadata) Caller {
	account, _ := parseTarget(who.User())
	return Caller{Account: account, Peer: who.RemoteAddr().String()}
}

func (px *Proxy) permissions(p Person, err error) (*ssh.Permissions, error) {
	switch {
	case err == nil:
		return &ssh.Permissions{ExtraData: map[any]any{personKey{}: p}}, nil
	case errdefs.IsUnauthorized(err):
		px.cfg.Metrics.login("refused")
		return nil, err
	case errdefs.IsFailedPrecondition(err): // the key belongs to several accounts
		return nil, &ssh.BannerError{Err: err, Message: "Berth: " + message(err) + "\r\n"}
	}
	px.log.Warn("SSH login", "error", err)
	return nil, &ssh.BannerError{Err: err, Message: "Berth cannot check your login right now: try again later\r\n"}
}
