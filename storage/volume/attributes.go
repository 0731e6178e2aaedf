package volume

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Attributes are the attributes that users can set of a file or directory; nil means no
// change.
type Attributes struct {
	Mode     *uint32 // permission bits only
	Modified *time.Time
}

// permissions are the bits of a mode that users can set.
const permissions = 0o777

// Set sets the attributes of an open file.
func (a Attributes) Set(f *os.File) error {
	var errs error
	if a.Mode != nil {
		errs = a.chmod(f)
	}
	if a.Modified != nil {
		at := unix.NsecToTimeval(a.Modified.UnixNano())
		errs = errors.Join(errs, unix.Futimes(int(f.Fd()), []unix.Timeval{at, at}))
	}
	return classify("set attributes", "", errs)
}

// chmod sets the permissions. It clears the set-uid and set-gid bits of a file, as the kernel
// does when a user other than root writes to it; a directory keeps the bit that passes its
// group on.
func (a Attributes) chmod(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	mode := *a.Mode & permissions
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= st.Mode & (unix.S_ISGID | unix.S_ISVTX)
	}
	return unix.Fchmod(int(f.Fd()), mode)
}

// Disarm clears the set-uid and set-gid bits and the capabilities of a regular file before it
// is changed, as the kernel does for users other than root.
func Disarm(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return classify("disarm", "", err)
	}
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		if err := unix.Fchmod(int(f.Fd()), st.Mode&permissions); err != nil {
			return classify("disarm", "", err)
		}
	}
	err := unix.Fremovexattr(int(f.Fd()), "security.capability")
	for _, absent := range []error{unix.ENODATA, unix.ENOTSUP, unix.EPERM, unix.ENOSYS} {
		if errors.Is(err, absent) {
			return nil
		}
	}
	return classify("disarm", "", err)
}

// SetAttributes sets the attributes of a file or directory. Other entries, links included, are
// an error. The folder itself keeps its mode.
func (f *Folder) SetAttributes(path string, a Attributes) error {
	path, err := Clean(path)
	if err != nil {
		return err
	}
	file, err := openRegular(f.dir, path, unix.O_RDONLY)
	if errors.Is(err, unix.EISDIR) {
		file, err = openDir(f.dir, path, inside)
	}
	if err != nil {
		return classify("set attributes", path, err)
	}
	defer file.Close()
	if path == "" {
		a.Mode = nil
	}
	return a.Set(file)
}
