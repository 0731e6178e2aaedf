package view

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/containerd/errdefs"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/storage/door"
	"github.com/berthhq/berth/storage/transfer"
)

// sftpGuest is who came in over SSH.
type sftpGuest struct {
	t    *tree
	user string
}

// EnterByToken lets in who shows an access token as the password, under any name.
func (v *Views) EnterByToken(ctx context.Context, c door.Caller, secret string) (door.Guest, error) {
	return v.enter(ctx, Guest{Token: secret, Peer: c.Peer})
}

// EnterByKey lets in who has an SSH key of the user as whom they come, by e-mail.
func (v *Views) EnterByKey(ctx context.Context, c door.Caller, key ssh.PublicKey) (door.Guest, error) {
	return v.enter(ctx, Guest{Email: c.Name, PublicKey: string(key.Marshal()), Peer: c.Peer})
}

func (v *Views) enter(ctx context.Context, g Guest) (door.Guest, error) {
	a, err := v.accounts.get(ctx, g)
	if err != nil {
		return nil, err
	}
	return &sftpGuest{t: &tree{views: v, protocol: "SFTP", guest: g}, user: a.user}, nil
}

func (g *sftpGuest) User() string { return g.user }

func (g *sftpGuest) Still(ctx context.Context) error {
	_, err := g.t.views.accounts.get(ctx, g.t.guest)
	return err
}

// maxPacket is how much one answer carries; clients that know no better ask for 32 KiB.
const maxPacket = 128 << 10

func (g *sftpGuest) Serve(ctx context.Context, stream io.ReadWriteCloser, say func(string)) error {
	f := &sftpFS{ctx: ctx, t: g.t, say: say, writing: map[string]*sftpWriting{}}
	s := sftp.NewRequestServer(stream, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}, sftp.WithRSMaxTxPacket(maxPacket))
	err := s.Serve()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// sftpError is an error in the protocol's few classes; the words go to the client too.
type sftpError struct {
	words string
	class error
}

func (e sftpError) Error() string { return e.words }
func (e sftpError) Unwrap() error { return e.class }

// told gives an error its class and its words.
func (f *sftpFS) told(name string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	status, words := transfer.Status(err)
	if status == http.StatusInternalServerError {
		f.t.views.cfg.Logger.Error("SFTP", "error", err)
	}
	class := sftp.ErrSSHFxFailure
	switch {
	case errdefs.IsNotFound(err):
		class = sftp.ErrSSHFxNoSuchFile
	case errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		class = sftp.ErrSSHFxPermissionDenied
	case errdefs.IsNotImplemented(err):
		class = sftp.ErrSSHFxOpUnsupported
	}
	if status == http.StatusInsufficientStorage {
		// OpenSSH shows no one the words of a failure.
		f.say("berth: " + name + ": " + words)
	}
	return sftpError{words, class}
}
