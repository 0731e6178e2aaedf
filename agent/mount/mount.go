// Package mount assembles the parts of a kernel's file system besides its image: folders of mounted
// volumes, a scratch directory, the runner, and the files in /etc that depend on the node. It never
// creates a folder, so that an unmounted volume does not look like an empty one.
package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/scopemount"
)

// Folder is a request to mount a folder of a volume in the container.
type Folder struct {
	Volume   string
	Path     string // below the volume
	Subpath  string // below the folder
	Target   string
	ReadOnly bool
	Own      bool // belongs to the user that the container runs as
}

// Volume is a volume that is mounted on this node.
type Volume struct {
	Path   string             // on the host
	Scopes *scopemount.Mounts // nil if scopes are directories or mounted by others
	Guard  *confine.Mount     // nil if nothing is confined, as in tests
}

// Confine adds nosuid and nodev to the volume's mount. A volume that is not mounted yet is confined
// when it is opened.
func (v Volume) Confine() error {
	base, err := v.root()
	if err != nil {
		return err
	}
	return base.Close()
}

// root confines and opens the volume's directory.
func (v Volume) root() (*os.File, error) {
	base, err := os.OpenFile(v.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || v.Guard == nil || !v.holds(base) {
		return base, err
	}
	confined, err := v.Guard.Apply(base)
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return confined, nil
}

// holds reports whether a directory is a mounted volume rather than an empty mount point: the
// storage proxy has marked the volume. A mount point of another file system is confined in any
// case.
func (v Volume) holds(base *os.File) bool {
	var st unix.Stat_t
	if unix.Fstatat(int(base.Fd()), ".berth/volume", &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return true
	}
	_ = confine.Restrict(base)
	return false
}

// Volumes are the volumes of this node by name.
type Volumes map[string]Volume

// Names returns the sorted names of the volumes whose path exists.
func (v Volumes) Names() []string {
	var names []string
	for name, volume := range v {
		if st, err := os.Stat(volume.Path); err == nil && st.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Bound is a set of open folders. Because they are open, the checked folders are the mounted ones
// even if paths change. Close it after the container has been created.
type Bound struct {
	folders []Folder
	files   []*os.File
	dir     string // of the mount points on the host, once they exist
}

// Open opens folders, and mounts their scopes if these are separate file systems. Symbolic links
// cannot lead out of the volume or the folder.
func (v Volumes) Open(ctx context.Context, folders []Folder) (*Bound, error) {
	if err := Check(folders); err != nil {
		return nil, err
	}
	b := &Bound{folders: slices.Clone(folders)}
	// Outer targets come first, because a mount hides everything that was mounted below it before.
	slices.SortStableFunc(b.folders, func(x, y Folder) int {
		return strings.Count(path.Clean(x.Target), "/") - strings.Count(path.Clean(y.Target), "/")
	})
	for _, f := range b.folders {
		dir, err := v.open(ctx, f)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.files = append(b.files, dir)
	}
	if err := b.checkPoints(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// checkPoints returns InvalidArgument for a folder whose target is behind a symbolic link of
// another folder. The runtime would follow the link to any place in the container.
func (b *Bound) checkPoints() error {
	for i, f := range b.folders {
		outer, rest := -1, ""
		for j := range b.folders[:i] { // outer targets come first, so the last match is the nearest
			if below, ok := strings.CutPrefix(path.Clean(f.Target), path.Clean(b.folders[j].Target)+"/"); ok {
				outer, rest = j, below
			}
		}
		if outer < 0 {
			continue
		}
		fd, err := unix.Openat2(int(b.files[outer].Fd()), rest, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		switch {
		case err == nil:
			unix.Close(fd)
		case errors.Is(err, fs.ErrNotExist): // the runtime creates it
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOTDIR):
			return fmt.Errorf("mount target %s: %s is a symbolic link or a file in the folder mounted at %s: %w", f.Target, rest, b.folders[outer].Target, errdefs.ErrInvalidArgument)
		default:
			return fmt.Errorf("mount target %s: %w", f.Target, err)
		}
	}
	return nil
}

// Mount mounts the open folders below dir, because the runtime runs in another process and mount
// namespace and needs paths.
func (b *Bound) Mount(dir string) ([]specs.Mount, error) {
	if len(b.files) == 0 {
		return nil, nil
	}
	b.dir = dir
	var out []specs.Mount
	for i, f := range b.folders {
		point := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(point, 0o700); err != nil {
			return nil, err
		}
		source := fmt.Sprintf("/proc/self/fd/%d", b.files[i].Fd())
		if err := unix.Mount(source, point, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return nil, fmt.Errorf("bind folder for %s: %w", f.Target, err)
		}
		options := []string{"rbind", "rprivate", "nosuid", "nodev"}
		if f.ReadOnly {
			options = append(options, "ro")
		}
		out = append(out, specs.Mount{Destination: path.Clean(f.Target), Type: "bind", Source: point, Options: options})
	}
	return out, nil
}

// Give changes the owner of the user's own folders to uid, unless they have an owner other than
// root already: the storage proxy creates folders as root. The group and the contents do not
// change.
func (b *Bound) Give(uid uint32) error {
	for i, f := range b.folders {
		if !f.Own || f.ReadOnly {
			continue
		}
		fd := int(b.files[i].Fd())
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("folder for %s: %w", f.Target, err)
		}
		if st.Uid != 0 {
			continue
		}
		if err := unix.Fchownat(fd, "", int(uid), -1, unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("change the owner of the folder for %s to user %d: %w", f.Target, uid, err)
		}
	}
	return nil
}

// Close closes the folders. Containers that were created keep their mounts.
func (b *Bound) Close() error {
	for _, f := range b.files {
		f.Close()
	}
	b.files = nil
	return Unmount(b.dir)
}

// Unmount removes the mount points that Mount created in dir, also those that a killed agent left.
func Unmount(dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		point := filepath.Join(dir, e.Name())
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
		// Only an empty directory may be removed: below it are the user's files.
		if err := os.Remove(point); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

func (v Volumes) open(ctx context.Context, f Folder) (*os.File, error) {
	volume, ok := v[f.Volume]
	if !ok {
		return nil, fmt.Errorf("volume %q is not configured on this node: %w", f.Volume, errdefs.ErrFailedPrecondition)
	}
	base, at, err := volume.base(ctx, f)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if volume.Guard != nil {
		confineScope(base, at)
	}
	// Only the storage proxy creates folders, so a symbolic link among them is an attack or an
	// error.
	folder, err := beneath(base, at, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, fmt.Errorf("folder %q of volume %q: %w", f.Path, f.Volume, err)
	}
	if clean(f.Subpath) == "." {
		return folder, nil
	}
	defer folder.Close()
	// Inside the folder, users can create symbolic links, as long as these stay inside.
	sub, err := beneath(folder, f.Subpath, 0)
	if err != nil {
		return nil, fmt.Errorf("path %q of the folder for %s: %w", f.Subpath, f.Target, err)
	}
	return sub, nil
}

// base opens the directory that contains a folder, the volume or its scope, and returns the
// folder's path in it. It returns FailedPrecondition if the volume is not mounted on this node,
// because Unavailable would mean that the agent is.
func (v Volume) base(ctx context.Context, f Folder) (*os.File, string, error) {
	if v.Scopes == nil {
		base, err := v.root()
		if err != nil {
			return nil, "", fmt.Errorf("volume %q is not mounted: %w: %w", f.Volume, err, errdefs.ErrFailedPrecondition)
		}
		return base, f.Path, nil
	}
	scope, rest, _ := strings.Cut(clean(f.Path), "/")
	if rest == "" {
		return nil, "", fmt.Errorf("volume %q: the path names no folder of scope %q: %w", f.Volume, scope, errdefs.ErrInvalidArgument)
	}
	base, err := v.Scopes.Open(ctx, scope)
	if errdefs.IsUnavailable(err) {
		return nil, "", fmt.Errorf("volume %q: %v: %w", f.Volume, err, errdefs.ErrFailedPrecondition)
	}
	if err != nil {
		return nil, "", fmt.Errorf("volume %q: %w", f.Volume, err)
	}
	return base, rest, nil
}

// confineScope adds nosuid and nodev to a scope that others have mounted.
func confineScope(base *os.File, at string) {
	scope, _, _ := strings.Cut(clean(at), "/")
	if dir, err := beneath(base, scope, unix.RESOLVE_NO_SYMLINKS); err == nil {
		_ = confine.Restrict(dir) // fails for a plain directory, to which the options of the volume's mount apply
		dir.Close()
	}
}

func clean(p string) string { return path.Clean(strings.TrimLeft(p, "/")) }

// beneath opens a path below a directory; the kernel guarantees that the result is below it.
func beneath(dir *os.File, p string, extra uint64) (*os.File, error) {
	fd, err := unix.Openat2(int(dir.Fd()), clean(p), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | extra,
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("not there: %w", errdefs.ErrNotFound)
	case errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("not a directory: %w", errdefs.ErrFailedPrecondition)
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("leads out of the folder: %w", errdefs.ErrPermissionDenied)
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(fd), p), nil
}

// reserved are directories in the container that belong to the system or to the agent.
var reserved = []string{"/proc", "/sys", "/dev", "/opt/berth", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/usr"}

// reservedFor returns the reserved directory that contains a clean path, or "".
func reservedFor(target string) string {
	for _, r := range reserved {
		if target == r || strings.HasPrefix(target, r+"/") {
			return r
		}
	}
	return ""
}

// Check returns InvalidArgument for targets at which a folder must not be mounted.
func Check(folders []Folder) error {
	seen := map[string]bool{}
	for _, f := range folders {
		target := path.Clean(f.Target)
		if !path.IsAbs(f.Target) || target == "/" || strings.ContainsRune(f.Target, 0) {
			return fmt.Errorf("mount target %q is not an absolute path below /: %w", f.Target, errdefs.ErrInvalidArgument)
		}
		if r := reservedFor(target); r != "" {
			return fmt.Errorf("mount target %s is in %s, which belongs to the system: %w", target, r, errdefs.ErrInvalidArgument)
		}
		if seen[target] {
			return fmt.Errorf("mount target %s is used twice: %w", target, errdefs.ErrInvalidArgument)
		}
		seen[target] = true
		for _, p := range []string{f.Path, f.Subpath} {
			if !filepath.IsLocal(clean(p)) {
				return fmt.Errorf("path %q for %s leads out of the folder: %w", p, target, errdefs.ErrInvalidArgument)
			}
		}
		if clean(f.Path) == "." {
			return fmt.Errorf("no folder named for %s: %w", target, errdefs.ErrInvalidArgument)
		}
	}
	return nil
}
