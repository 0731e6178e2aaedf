package view

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/containerd/errdefs"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/storage/sshd"
	"github.com/berthhq/berth/storage/transfer"
)

// sftpClient is a client that has logged in over SSH.
type sftpClient struct {
	t    *tree
	user string
}

// LoginWithToken authenticates a client that sends an access token as the password. The user
// name does not matter.
func (v *Views) LoginWithToken(ctx context.Context, c sshd.Caller, secret string) (sshd.Client, error) {
	return v.login(ctx, Credentials{Token: secret, Peer: c.Peer})
}

// LoginWithKey authenticates a client by an SSH key of the user whose e-mail address is the
// user name.
func (v *Views) LoginWithKey(ctx context.Context, c sshd.Caller, key ssh.PublicKey) (sshd.Client, error) {
	return v.login(ctx, Credentials{Email: c.Name, PublicKey: string(key.Marshal()), Peer: c.Peer})
}

func (v *Views) login(ctx context.Context, g Credentials) (sshd.Client, error) {
	a, err := v.accounts.get(ctx, g)
	if err != nil {
		return nil, err
	}
	return &sftpClient{t: &tree{views: v, protocol: "SFTP", guest: g}, user: a.user}, nil
}

func (g *sftpClient) User() string { return g.user }

func (g *sftpClient) Check(ctx context.Context) error {
	_, err := g.t.views.accounts.get(ctx, g.t.guest)
	return err
}

// maxPacket is the size of one answer. Clients that do not negotiate request 32 KiB.
const maxPacket = 128 << 10

func (g *sftpClient) Serve(ctx context.Context, stream io.ReadWriteCloser, say func(string)) error {
	f := &sftpFS{ctx: ctx, t: g.t, say: say, writing: map[string]*sftpWriting{}}
	s := sftp.NewRequestServer(stream, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}, sftp.WithRSMaxTxPacket(maxPacket))
	err := s.Serve()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// sftpError has one of the few error codes of the protocol; the client also gets the message.
type sftpError struct {
	words string
	class error
}

func (e sftpError) Error() string { return e.words }
func (e sftpError) Unwrap() error { return e.class }

// told converts an error to a code and a message of the protocol.
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
		// OpenSSH does not show the message of a failure to the user.
		f.say("berth: " + name + ": " + words)
	}
	return sftpError{words, class}
}
