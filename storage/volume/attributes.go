package volume

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Attributes are what people may set of a file or directory; nil stays as it is.
type Attributes struct {
	Mode     *uint32 // the permissions alone: no other bit is set or taken
	Modified *time.Time
}

// permissions are the bits of a mode that people may set.
const permissions = 0o777

// Set sets the attributes of an open file.
func (a Attributes) Set(f *os.File) error {
	var errs error
	if a.Mode != nil {
		errs = unix.Fchmod(int(f.Fd()), *a.Mode&permissions)
	}
	if a.Modified != nil {
		at := unix.NsecToTimeval(a.Modified.UnixNano())
		errs = errors.Join(errs, unix.Futimes(int(f.Fd()), []unix.Timeval{at, at}))
	}
	return classify("set attributes", "", errs)
}

// SetAttributes sets those of a file or directory, not of a link or of anything
// else. The folder itself keeps its mode.
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
