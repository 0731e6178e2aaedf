package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"sync/atomic"

	"github.com/containerd/errdefs"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/storage/sshd"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
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
	return &sftpClient{t: &tree{views: v, protocol: "SFTP", credentials: g}, user: a.user}, nil
}

func (g *sftpClient) User() string { return g.user }

func (g *sftpClient) Check(ctx context.Context) error {
	_, err := g.t.views.accounts.get(ctx, g.t.credentials)
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

// reply converts an error to a code and a message of the protocol.
func (f *sftpFS) reply(name string, err error) error {
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

// sftpReading is a file that is open for reading.
type sftpReading struct {
	fs   *sftpFS
	name string
	file *os.File
	at   place
	read atomic.Int64
}

func (r *sftpReading) ReadAt(p []byte, at int64) (int, error) {
	if err := r.fs.t.still(r.fs.ctx, r.at.folder, false); err != nil {
		return 0, r.fs.reply(r.name, err)
	}
	n, err := r.file.ReadAt(p, at)
	r.read.Add(int64(n))
	return n, r.fs.reply(r.name, err)
}

func (r *sftpReading) Close() error {
	r.fs.end()
	r.fs.t.did(r.at, storagepb.FileOperation_READ, r.at.path, r.read.Load())
	return r.file.Close()
}

// sftpWriting is a file that is open for writing.
type sftpWriting struct {
	fs        *sftpFS
	name      string
	at        place
	staged    *transfer.StagedFile
	written   atomic.Int64
	front     front
	inPlace   bool         // writes are visible at once, however the file is closed
	fresh     bool         // no file existed before
	partial   bool         // a partial file existed
	resumed   bool         // the client continues the partial file
	exclusive bool         // the file must not exist
	floor     atomic.Int64 // lowest offset that an appending client can write to
	cut       error        // why the connection ended before the client closed the file
}

func (w *sftpWriting) WriteAt(p []byte, at int64) (int, error) {
	if err := w.fs.t.still(w.fs.ctx, w.at.folder, true); err != nil {
		return 0, w.fs.reply(w.name, err)
	}
	if at < w.floor.Load() {
		return 0, w.fs.reply(w.name, fmt.Errorf("%q: is open for appending, and byte %d exists already: %w", w.name, at, errdefs.ErrInvalidArgument))
	}
	n, err := w.staged.WriteAt(p, at)
	w.written.Add(int64(n))
	w.front.wrote(at, at+int64(n))
	return n, w.fs.reply(w.name, err)
}

func (w *sftpWriting) truncate(size int64) error {
	w.front.cut(size)
	w.floor.Store(min(w.floor.Load(), size))
	return w.staged.Truncate(size)
}

func (w *sftpWriting) ReadAt(p []byte, at int64) (int, error) {
	if err := w.fs.t.still(w.fs.ctx, w.at.folder, false); err != nil {
		return 0, w.fs.reply(w.name, err)
	}
	n, err := w.staged.ReadAt(p, at)
	return n, w.fs.reply(w.name, err)
}

func (w *sftpWriting) stat() (info, error) {
	i, err := w.staged.Stat()
	if err != nil {
		return info{}, err
	}
	return info{name: path.Base(w.name), mode: i.Mode().Perm(), size: i.Size(), modified: i.ModTime()}, nil
}

// TransferError is called when the connection has ended, so the file is incomplete.
func (w *sftpWriting) TransferError(err error) { w.cut = err }

// Close publishes the file.
func (w *sftpWriting) Close() error {
	err := w.close()
	if w.inPlace && w.written.Load() > 0 || !w.inPlace && w.cut == nil && !w.untouched() && err == nil {
		w.fs.t.did(w.at, storagepb.FileOperation_WROTE, w.at.path, w.written.Load())
	}
	return w.fs.reply(w.name, err)
}

func (w *sftpWriting) close() error {
	w.fs.mu.Lock()
	w.fs.open--
	if w.fs.writing[w.name] == w {
		delete(w.fs.writing, w.name)
	}
	w.fs.mu.Unlock()
	if w.cut != nil || w.untouched() {
		return w.savePartial()
	}
	if err := w.fs.t.still(w.fs.ctx, w.at.folder, true); err != nil {
		w.staged.Discard()
		return err
	}
	var when transfer.Condition
	if w.exclusive {
		when = func(there *volume.Entry) error {
			if there != nil {
				return fmt.Errorf("%q: exists: %w", w.name, errdefs.ErrAlreadyExists)
			}
			return nil
		}
	}
	err := w.staged.Publish(when)
	if err == nil && w.partial && !w.resumed {
		if err := w.fs.t.dropPartial(w.fs.ctx, w.name); err != nil { // otherwise the sweep removes it
			w.fs.t.views.cfg.Logger.Warn("remove the partial file of a complete one", "error", err)
		}
	}
	return err
}

// untouched reports whether the file is a partial file that the client has not continued.
func (w *sftpWriting) untouched() bool {
	return w.resumed && w.floor.Load() > 0 && w.written.Load() == 0
}

// savePartial keeps an interrupted upload so that the client can resume it.
func (w *sftpWriting) savePartial() error {
	size := w.front.reached()
	if !w.fresh || size == 0 {
		w.staged.Discard()
		return nil
	}
	err := w.staged.SavePartial(w.at.partialOf(), size)
	if errdefs.IsConflict(err) {
		return nil // another connection has already resumed it
	}
	return err
}
