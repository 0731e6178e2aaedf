package view

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/pkg/sftp"

	"github.com/berthhq/berth/internal/foldergroup"
	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/volume"
)

// maxOpen limits the open files and directories of a channel.
const maxOpen = 256

// sftpFS implements the handlers of package sftp on a tree, for one channel. Its paths are
// absolute and clean.
type sftpFS struct {
	ctx context.Context
	t   *tree
	say func(string)

	mu      sync.Mutex
	open    int
	writing map[string]*sftpWriting // new files that are being written, by name
}

// begin counts an open file or directory; the caller ends it.
func (f *sftpFS) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open >= maxOpen {
		return sftpError{fmt.Sprintf("a channel has at most %d files open", maxOpen), sftp.ErrSSHFxFailure}
	}
	f.open++
	return nil
}

func (f *sftpFS) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

// at returns the new file that is being written under a name.
func (f *sftpFS) at(name string) *sftpWriting {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writing[name]
}

// Fileread opens a file for reading.
func (f *sftpFS) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	file, at, err := f.t.open(f.ctx, r.Filepath)
	if err != nil {
		f.end()
		return nil, f.reply(r.Filepath, err)
	}
	return &sftpReading{fs: f, name: r.Filepath, file: file, at: at}, nil
}

// Filewrite opens a file for writing.
func (f *sftpFS) Filewrite(r *sftp.Request) (io.WriterAt, error) { return f.OpenFile(r) }

// OpenFile opens a file for writing and reading: a new file, which is published when it is
// closed, or an existing one, which is changed in place unless it is to be truncated.
func (f *sftpFS) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	w, err := f.openFile(r)
	if err != nil {
		f.end()
		return nil, f.reply(r.Filepath, err)
	}
	return w, nil
}

func (f *sftpFS) openFile(r *sftp.Request) (w *sftpWriting, err error) {
	flags := r.Pflags()
	w = &sftpWriting{fs: f, name: r.Filepath, exclusive: flags.Excl}
	there, err := f.t.stat(f.ctx, r.Filepath)
	absent := errdefs.IsNotFound(err)
	w.fresh = absent
	_, w.partial = f.partial(r.Filepath, err)
	switch {
	case err != nil && !absent:
		return nil, err
	case w.partial && !flags.Trunc && !flags.Excl:
		return w, f.goOn(w, r)
	case absent && !flags.Creat:
		return nil, err
	case !absent && flags.Creat && flags.Excl:
		return nil, fmt.Errorf("%q: exists: %w", r.Filepath, errdefs.ErrAlreadyExists)
	case !absent && there.dir:
		return nil, fmt.Errorf("%q: is a directory: %w", r.Filepath, errdefs.ErrFailedPrecondition)
	case !absent && !flags.Trunc:
		w.inPlace = true
		w.staged, w.at, err = f.t.edit(f.ctx, r.Filepath)
		if err == nil && flags.Append {
			w.floor.Store(w.staged.Size())
		}
		return w, err
	}
	w.staged, w.at, err = f.t.stage(f.ctx, r.Filepath, 0)
	if err != nil {
		return nil, err
	}
	mode := uint32(there.mode)
	if absent {
		mode = modeOf(r)
	}
	w.staged.Set(volume.Attributes{Mode: &mode})
	f.write(w)
	return w, nil
}

// write registers a new file that is being written.
func (f *sftpFS) write(w *sftpWriting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing[w.name] = w
}

// modeOf returns the mode that a client requests for a new file. Package sftp drops the flags for
// the attributes of an open request, but of the attributes that clients send, only the mode has
// four bytes. The group gets the permissions of the owner, because the group of a folder is its
// users.
func modeOf(r *sftp.Request) uint32 {
	if len(r.Attrs) == 4 {
		if mode := binary.BigEndian.Uint32(r.Attrs) & 0o777; mode != 0 {
			return foldergroup.WithGroup(mode)
		}
	}
	return foldergroup.File
}

// Filecmd runs commands that return only success or failure.
func (f *sftpFS) Filecmd(r *sftp.Request) error { return f.reply(r.Filepath, f.command(r)) }

func (f *sftpFS) command(r *sftp.Request) error {
	switch r.Method {
	case "Mkdir":
		return f.t.mkdir(f.ctx, r.Filepath)
	case "Rmdir":
		return f.t.rmdir(f.ctx, r.Filepath)
	case "Remove":
		_, err := f.t.stat(f.ctx, r.Filepath) // fails for hidden entries
		if _, half := f.partial(r.Filepath, err); half {
			return f.t.dropPartial(f.ctx, r.Filepath)
		}
		if err != nil {
			return err
		}
		return f.t.remove(f.ctx, r.Filepath, false)
	case "Rename":
		return f.t.rename(f.ctx, r.Filepath, r.Target, false)
	case "Setstat":
		return f.set(r)
	}
	return fmt.Errorf("%s: links cannot be created over SFTP: %w", r.Method, errdefs.ErrNotImplemented)
}

// PosixRename replaces the file at the target.
func (f *sftpFS) PosixRename(r *sftp.Request) error {
	return f.reply(r.Filepath, f.t.rename(f.ctx, r.Filepath, r.Target, true))
}

func (f *sftpFS) set(r *sftp.Request) error {
	has, to := r.AttrFlags(), r.Attributes()
	if to == nil {
		return fmt.Errorf("%q: the attributes are cut off: %w", r.Filepath, errdefs.ErrInvalidArgument)
	}
	if has.UidGid {
		return fmt.Errorf("%q: owners cannot be changed over SFTP: %w", r.Filepath, errdefs.ErrPermissionDenied)
	}
	var a volume.Attributes
	if has.Permissions {
		a.Mode = &to.Mode
	}
	if has.Acmodtime {
		at := time.Unix(int64(to.Mtime), 0)
		a.Modified = &at
	}
	if has.Size {
		if err := f.truncate(r.Filepath, int64(to.Size)); err != nil || a == (volume.Attributes{}) {
			return err
		}
	}
	if w := f.at(r.Filepath); w != nil {
		w.staged.Set(a)
		return nil
	}
	return f.t.set(f.ctx, r.Filepath, a)
}

func (f *sftpFS) truncate(name string, size int64) error {
	if size < 0 {
		return fmt.Errorf("%q: size %d: %w", name, uint64(size), errdefs.ErrInvalidArgument)
	}
	if w := f.at(name); w != nil {
		return w.truncate(size)
	}
	d, at, err := f.t.edit(f.ctx, name)
	if _, half := f.partial(name, err); half {
		return f.truncatePartial(name, size)
	}
	if err != nil {
		return err
	}
	if err := d.Truncate(size); err != nil {
		d.Discard()
		return err
	}
	f.t.did(at, storagepb.FileOperation_WROTE, at.path, 0)
	return d.Publish(nil)
}

// blockSize is the unit of statvfs.
const blockSize = 4096

// StatVFS reports the limit of the folder as the size of the file system.
func (f *sftpFS) StatVFS(r *sftp.Request) (*sftp.StatVFS, error) {
	space, _, err := f.t.space(f.ctx, r.Filepath)
	if err != nil {
		return nil, f.reply(r.Filepath, err)
	}
	blocks, free := uint64(space.Total)/blockSize, uint64(space.Left)/blockSize
	return &sftp.StatVFS{
		Bsize: blockSize, Frsize: blockSize, Blocks: blocks, Bfree: free, Bavail: free,
		Files: space.Files, Ffree: space.FilesLeft, Favail: space.FilesLeft, Namemax: folderpath.MaxName,
	}, nil
}

// Filelist lists a directory or describes one name.
func (f *sftpFS) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	switch r.Method {
	case "List":
		return f.list(r.Filepath)
	case "Stat":
		return f.Lstat(r)
	}
	return nil, f.reply(r.Filepath, fmt.Errorf("%s: links are hidden over SFTP: %w", r.Method, errdefs.ErrNotImplemented))
}

// Lstat describes a name. No name of a view is a link.
func (f *sftpFS) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	if w := f.at(r.Filepath); w != nil {
		i, err := w.stat()
		return sftpOne{i}, f.reply(r.Filepath, err)
	}
	i, err := f.t.stat(f.ctx, r.Filepath)
	if size, half := f.partial(r.Filepath, err); half {
		i, err = info{name: path.Base(r.Filepath), mode: 0o600, size: size, modified: f.t.views.began}, nil
	}
	return sftpOne{i}, f.reply(r.Filepath, err)
}

// sftpOne is a list with one entry.
type sftpOne struct{ info }

func (o sftpOne) ListAt(out []os.FileInfo, at int64) (int, error) {
	if at > 0 {
		return 0, io.EOF
	}
	return copy(out, []fs.FileInfo{o.info}), nil
}

func (f *sftpFS) list(name string) (sftp.ListerAt, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	l := &sftpList{fs: f, name: name}
	if err := l.more(); err != nil {
		f.end()
		return nil, f.reply(name, err)
	}
	return l, nil
}

// sftpList is a directory that is read page by page. Package sftp requests one page after the
// other.
type sftpList struct {
	fs     *sftpFS
	name   string
	page   []info
	cursor string
}

func (l *sftpList) more() (err error) {
	l.page, l.cursor, err = l.fs.t.page(l.fs.ctx, l.name, l.cursor)
	return err
}

func (l *sftpList) ListAt(out []os.FileInfo, _ int64) (n int, err error) {
	for len(l.page) == 0 {
		if l.cursor == "" {
			return 0, io.EOF
		}
		if err := l.more(); err != nil {
			return 0, l.fs.reply(l.name, err)
		}
	}
	n = min(len(out), len(l.page))
	for i, entry := range l.page[:n] {
		out[i] = entry
	}
	l.page = l.page[n:]
	return n, nil
}

func (l *sftpList) Close() error {
	l.fs.end()
	return nil
}
