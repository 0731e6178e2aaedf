package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/wholefile"
)

// The places of a volume's identity. Only a mounted volume has it, so an empty mount point is
// never mistaken for the volume and never written to.
const (
	ownDir     = ".berth"
	markerName = ".berth/volume"
)

// identity is the expected file system of a volume. It is recorded when the volume is first
// mounted, and stored in the proxy's state and, as a marker, on the volume.
type identity struct {
	name   string
	mount  string
	state  string // file that stores the id
	create bool   // the directory does not have to be a mount point
	bare   bool   // only scopes are mounted, each by the proxy; the directory itself contains no files
	guard  *confine.Mount

	mu sync.Mutex
	id string // content of the file; it never changes
}

// root opens the volume's root after it has verified that the volume is mounted, and makes
// set-uid programs in it ineffective on this machine. The caller must close it soon, because
// an open root prevents unmounting.
func (i *identity) root() (*os.File, error) {
	root, err := i.proven()
	if err != nil {
		return nil, err
	}
	if i.create && os.Geteuid() == 0 {
		err = confine.Limit(root, closed) // the proxy owns the directory
	}
	restricted := root
	if err == nil && !i.bare {
		restricted, err = i.guard.Apply(root)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("volume %s: %w: %w", i.name, err, errdefs.ErrUnavailable), root.Close())
	}
	return restricted, nil
}

// closed is the mode of directories above folders: containers have the folders themselves
// mounted, and only root walks the path.
const closed = 0o700

// proven opens the mounted file system at the volume's path if it is the volume.
func (i *identity) proven() (*os.File, error) {
	want, err := i.known()
	if err != nil {
		return nil, err
	}
	root, err := i.open(want == "")
	if err != nil {
		return nil, err
	}
	got, err := readMarker(root)
	if err == nil && want != "" && got == want {
		return root, nil
	}
	if err == nil {
		err = i.claim(root, want, got)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

func (i *identity) open(first bool) (*os.File, error) {
	fd, err := unix.Open(i.mount, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && i.create && first {
		if err := os.MkdirAll(i.mount, closed); err != nil {
			return nil, fmt.Errorf("create volume %s: %w: %w", i.name, err, errdefs.ErrUnavailable)
		}
		fd, err = unix.Open(i.mount, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("volume %s: open mount point: %w: %w", i.name, err, errdefs.ErrUnavailable)
	}
	return os.NewFile(uintptr(fd), i.mount), nil
}

// claim handles a volume that is used for the first time, and a wrong file system at its path.
func (i *identity) claim(root *os.File, want, got string) error {
	switch {
	case want != "" && got == "":
		return problem.Unavailable("volume %s is not mounted", i.name)
	case want != "":
		return problem.Unavailable("volume %s: another volume is mounted at its place", i.name)
	case got != "": // another proxy, or an earlier life of this one, marked it
		return i.remember(got)
	}
	if !i.create {
		mounted, err := mountinfo.Mounted(i.mount)
		if err != nil {
			return fmt.Errorf("volume %s: read the table of mounts: %w: %w", i.name, err, errdefs.ErrUnavailable)
		}
		if !mounted {
			return problem.Unavailable("volume %s: %s is not a mount point", i.name, i.mount)
		}
	}
	id, err := writeMarker(root)
	if err != nil {
		return fmt.Errorf("mark volume %s: %w: %w", i.name, err, errdefs.ErrUnavailable)
	}
	return i.remember(id)
}

func (i *identity) known() (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.id != "" {
		return i.id, nil
	}
	raw, err := os.ReadFile(i.state)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("identity of volume %s: %w", i.name, err)
	}
	i.id = strings.TrimSpace(string(raw))
	return i.id, nil
}

func (i *identity) remember(id string) error {
	if err := os.MkdirAll(filepath.Dir(i.state), 0o700); err != nil {
		return fmt.Errorf("identity of volume %s: %w", i.name, err)
	}
	if err := wholefile.Write(i.state, []byte(id+"\n")); err != nil { // otherwise a restart would claim the volume again
		return fmt.Errorf("identity of volume %s: %w", i.name, err)
	}
	return nil
}

// readMarker returns the id on the volume, or "".
func readMarker(root *os.File) (string, error) {
	fd, err := descriptor(root, markerName, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0, plain)
	if errors.Is(err, unix.ENOENT) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read marker: %w: %w", err, errdefs.ErrUnavailable)
	}
	defer unix.Close(fd)
	raw := make([]byte, 128)
	n, err := unix.Read(fd, raw)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, raw)
	}
	if err != nil {
		return "", fmt.Errorf("read marker: %w: %w", err, errdefs.ErrUnavailable)
	}
	id := strings.TrimSpace(string(raw[:n]))
	if _, err := uuid.Parse(id); err != nil {
		return "", fmt.Errorf("marker has no uuid: %w", errdefs.ErrUnavailable)
	}
	return id, nil
}

func writeMarker(root *os.File) (string, error) {
	own, err := mkdir(root, ownDir, 0o700, plain)
	if err != nil {
		return "", err
	}
	defer own.Close()
	id := uuid.NewString()
	f, err := openat2(own, "volume", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600, plain)
	if err != nil {
		return "", err // EEXIST: another proxy was faster; the next check finds its id
	}
	_, err = f.WriteString(id + "\n")
	return id, errors.Join(err, f.Sync(), f.Close())
}
