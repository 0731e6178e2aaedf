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

// stagingDir, in a scope, holds uploads until they are complete. It counts
// against the scope's limit, lies on the folders' file system, and no
// container can reach it: they mount folders.
const stagingDir = ".upload"

// Staging is the open staging directory of a scope.
type Staging struct{ dir *os.File }

// Staging opens the scope's staging directory, making it if needed. The
// caller closes it.
func (v *Volume) Staging(scope string) (*Staging, error) {
	return v.staging(scope, func(s *os.File) (*os.File, error) { return mkdir(s, stagingDir, 0o700, plain) })
}

// Staged is Staging that answers NotFound instead of making the directory.
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

// WriteFile writes a small file so that it is there in full or not at all.
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

// Rename puts a file in the place of another.
func (s *Staging) Rename(from, to string) error {
	return classify("staging", to, unix.Renameat(int(s.dir.Fd()), from, int(s.dir.Fd()), to))
}

// Remove removes a file; an absent one is done.
func (s *Staging) Remove(name string) error {
	if err := unix.Unlinkat(int(s.dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return classify("staging", name, err)
	}
	return nil
}

// Each calls f with the name of every file and when it was last changed.
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

// Placing is how a file comes to its place.
type Placing struct {
	Replace bool // a file or link that is there
	Parents bool // missing directories are made; else they are NotFound
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

// inherit gives a file the owner of the one that it replaces, or else the group of the
// directory that it comes to, as if it had been made there.
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
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) { // a proxy that is not root, or a server that knows no numbers
		return nil
	}
	return err
}

// Scopes lists the scopes that have a directory, in hex; where scopes are mounts of ours,
// those that are mounted.
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
