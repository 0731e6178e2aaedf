package volume

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/foldergroup"
)

// stagingDir, in a scope, contains uploads until they are complete. It counts against the
// scope's limit, is on the file system of the folders, and cannot be reached by containers,
// which mount only folders.
const stagingDir = ".upload"

// Staging is the open staging directory of a scope.
type Staging struct{ dir *os.File }

// Staging opens the scope's staging directory and creates it if needed. The caller closes it.
func (v *Volume) Staging(scope string) (*Staging, error) {
	return v.staging(scope, func(s *os.File) (*os.File, error) { return mkdir(s, stagingDir, 0o700, plain) })
}

// Staged opens the scope's staging directory, or returns NotFound if it does not exist.
func (v *Volume) Staged(scope string) (*Staging, error) {
	return v.staging(scope, func(s *os.File) (*os.File, error) { return openDir(s, stagingDir, plain) })
}

func (v *Volume) staging(scope string, open func(*os.File) (*os.File, error)) (*Staging, error) {
	hex, err := hexID("scope", scope)
	if err != nil {
		return nil, err
	}
	s, err := v.openScope(hex)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	d, err := open(s)
	if err != nil {
		return nil, classify("open staging of scope", hex, err)
	}
	return &Staging{dir: d}, nil
}

// Close releases the directory.
func (s *Staging) Close() error { return s.dir.Close() }

// Open opens a file of the staging directory.
func (s *Staging) Open(name string, flags int) (*os.File, error) {
	f, err := openat2(s.dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600, plain)
	if err != nil {
		return nil, classify("staging", name, err)
	}
	return f, nil
}

// WriteFile writes a small file atomically.
func (s *Staging) WriteFile(name string, raw []byte) error {
	f, err := s.Open(name+".new", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return classify("staging", name, err)
	}
	return s.Rename(name+".new", name)
}

// Rename replaces one file by another.
func (s *Staging) Rename(from, to string) error {
	return classify("staging", to, unix.Renameat(int(s.dir.Fd()), from, int(s.dir.Fd()), to))
}

// Remove removes a file. An absent file is not an error.
func (s *Staging) Remove(name string) error {
	if err := unix.Unlinkat(int(s.dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return classify("staging", name, err)
	}
	return nil
}

// Each calls f with the name and the modification time of every file.
func (s *Staging) Each(f func(name string, modified time.Time)) error {
	d, err := openDir(s.dir, "", plain)
	if err != nil {
		return classify("staging", "", err)
	}
	defer d.Close()
	return classify("staging", "", eachName(d, func(name []byte) {
		var st unix.Stat_t
		if unix.Fstatat(int(d.Fd()), string(name), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			f(string(name), time.Unix(st.Mtim.Unix()))
		}
	}))
}

// Placing are the options of Publish.
type Placing struct {
	Replace bool // replace a file or link at the target
	Parents bool // create missing directories; without it they are NotFound
}

// Publish moves a complete staging file to its place in a folder, in one step.
func (f *Folder) Publish(s *Staging, name, path string, how Placing) error {
	path, err := CleanNew(path)
	if err != nil {
		return err
	}
	dir, last := split(path)
	var parent *os.File
	if how.Parents {
		parent, err = mkdirAll(f.dir, dir, foldergroup.Dir, inside)
	} else {
		parent, err = followDir(f.dir, dir, inside)
	}
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("its directory %q: %w", dir, errdefs.ErrNotFound)
	}
	if err != nil {
		return classify("publish", path, err)
	}
	defer parent.Close()
	if err := inherit(s.dir, name, parent, last); err != nil {
		return classify("publish", path, err)
	}
	if err := rename(s.dir, name, parent, last, how.Replace); err != nil {
		return classify("publish", path, err)
	}
	return classify("publish", path, parent.Sync())
}

// inherit sets the owner of a file to that of the file that it replaces, or else its group to
// that of its directory, as if the file had been created there.
func inherit(from *os.File, name string, to *os.File, last string) error {
	var dir, file unix.Stat_t
	if err := unix.Fstat(int(to.Fd()), &dir); err != nil {
		return err
	}
	uid, gid := -1, -1
	if dir.Mode&unix.S_ISGID != 0 {
		gid = int(dir.Gid)
	}
	err := unix.Fstatat(int(to.Fd()), last, &file, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && file.Mode&unix.S_IFMT == unix.S_IFREG {
		uid, gid = int(file.Uid), int(file.Gid)
	}
	err = unix.Fchownat(int(from.Fd()), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) { // the proxy is not root, or the server does not support numeric ids
		return nil
	}
	return err
}

// Scopes returns the scopes that have a directory, in hex; if the proxy mounts scopes, those
// that are mounted.
func (v *Volume) Scopes() ([]string, error) {
	if v.mounts != nil {
		return v.mounts.Mounted()
	}
	root, err := v.identity.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var out []string
	err = eachName(root, func(name []byte) {
		if hex, err := hexID("scope", string(name)); err == nil && hex == string(name) {
			out = append(out, hex)
		}
	})
	return out, classify("list scopes of", v.cfg.Name, err)
}
