package scopemount

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

const (
	// timeout limits calls of the product and of mount(8): a server that does not answer must not
	// block callers for long.
	timeout = 20 * time.Second
	// again is the pause after a failed mount, during which its error is returned again.
	again = 5 * time.Second
	// sweepEvery is the interval at which unused mounts are removed.
	sweepEvery = time.Minute
	// DefaultIdle is how long an unused mount stays. It is shorter than the pause between the
	// proxies' sweeps of abandoned uploads, which use mounts.
	DefaultIdle = 5 * time.Minute
)

// Config of Mounts.
type Config struct {
	Dir  string // the volume's directory, absolute; scopes are mounted right below
	Rule Rule
	// Plan returns how the product mounts a scope. It is nil if there is no product, so that only
	// the rule applies.
	Plan   func(ctx context.Context, scope string) (Spec, error)
	Idle   time.Duration // 0 = DefaultIdle
	Logger *slog.Logger
}

// Mounts are the mounts of the scopes of one volume. The kernel lists the mounted scopes, so
// nothing is stored on disk, and a restarted process finds them. Several processes can use one
// directory.
type Mounts struct {
	cfg Config

	mu     sync.Mutex
	scopes map[string]*scope
}

// scope is the state of one scope.
type scope struct {
	mu     sync.Mutex // locked while the scope is mounted
	used   time.Time  // under Mounts.mu, as all below
	failed time.Time
	err    error
}

// New returns the mounts of a volume; the rule has been checked.
func New(cfg Config) *Mounts {
	if cfg.Idle == 0 {
		cfg.Idle = DefaultIdle
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Dir = filepath.Clean(cfg.Dir)
	return &Mounts{cfg: cfg, scopes: map[string]*scope{}}
}

// Open opens a scope's file system, and mounts it first if necessary. While the file is open, the
// scope cannot be unmounted.
func (m *Mounts) Open(ctx context.Context, name string) (*os.File, error) {
	if !scopeForm.MatchString(name) {
		return nil, fmt.Errorf("scope %.80q: want 32 hexadecimal digits: %w", name, errdefs.ErrInvalidArgument)
	}
	s := m.use(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := m.mounted(name)
	if err == nil && f == nil {
		m.mu.Lock()
		last, recent := s.err, time.Since(s.failed) < again
		m.mu.Unlock()
		if recent {
			return nil, last
		}
		if f, err = m.mount(ctx, name); err != nil {
			err = fmt.Errorf("scope %s is not mounted: %w", name, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.err, s.failed = err, time.Time{}
	if err != nil && ctx.Err() == nil && !errdefs.IsNotFound(err) {
		s.failed = time.Now()
	}
	return f, err
}

func (m *Mounts) use(name string) *scope {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.scopes[name]
	if s == nil {
		s = &scope{}
		m.scopes[name] = s
	}
	s.used = time.Now()
	return s
}

// Failing returns the error of a scope that could not be opened at the last attempt, or nil.
func (m *Mounts) Failing() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.scopes {
		if !s.failed.IsZero() {
			return s.err
		}
	}
	return nil
}

// root returns the path of the volume's directory without symbolic links, as the kernel names it.
func (m *Mounts) root() string {
	if dir, err := filepath.EvalSymlinks(m.cfg.Dir); err == nil {
		return dir
	}
	return m.cfg.Dir // it does not exist yet
}

func (m *Mounts) point(name string) string { return filepath.Join(m.root(), name) }

// mounted opens the mount of a scope, or returns nil.
func (m *Mounts) mounted(name string) (*os.File, error) {
	info, err := m.at(name)
	if err != nil || info == nil {
		return nil, err
	}
	if err := m.mine(info, name); err != nil {
		return nil, err
	}
	f, err := m.open(name, info.ID)
	if removed(info) && err == nil {
		err = errors.Join(unix.ESTALE, f.Close())
	}
	if errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOTCONN) {
		m.cfg.Logger.Warn("stale mount of a scope is removed", "scope", name, "error", err)
		if err := unix.Unmount(m.point(name), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return nil, fmt.Errorf("unmount stale scope %s: %w", name, err)
		}
		return nil, nil
	}
	return f, err
}

// removed reports whether the mounted directory was removed, which the kernel marks in its path.
func removed(i *mountinfo.Info) bool { return strings.HasSuffix(i.Root, "//deleted") }

// at returns the uppermost mount at a scope's path.
func (m *Mounts) at(name string) (*mountinfo.Info, error) {
	point := m.point(name)
	list, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) { return i.Mountpoint != point, false })
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[len(list)-1], nil
}

// mine returns an error for a mount that differs from the rule. The kernel names nfs nfs4, and a
// file of a loop device by the device.
func (m *Mounts) mine(i *mountinfo.Info, name string) error {
	want := m.cfg.Rule.of(name)
	ok := strings.TrimSuffix(i.FSType, "4") == strings.TrimSuffix(want.Type, "4")
	looped := false
	for _, o := range want.Options {
		looped = looped || o == "loop"
		if strings.Contains(o, name) && !removed(i) && !slices.Contains(strings.Split(plainOptions(i.VFSOptions), ","), plainOptions(o)) {
			ok = false
		}
	}
	if !looped && source(i.Source) != source(want.Source) {
		ok = false
	}
	if !ok {
		return fmt.Errorf("scope %s: %s %.200q is mounted at its path instead of %s %.200q: %w",
			name, i.FSType, i.Source, want.Type, want.Source, errdefs.ErrFailedPrecondition)
	}
	return nil
}

// plainOptions treats subvol=/a as subvol=a, as the kernel does.
func plainOptions(s string) string { return strings.ReplaceAll(s, "=/", "=") }

// open opens a scope's directory and checks that it is on the mount with this id: if the mount is
// removed at the same moment, the plain directory must not be used.
func (m *Mounts) open(name string, id int) (*os.File, error) {
	dir, err := unix.Open(m.cfg.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("open scope %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return nil, errors.Join(fmt.Errorf("stat scope %s: %w", name, err), f.Close())
	}
	if st.Mask&unix.STATX_MNT_ID == 0 || int(st.Mnt_id) != id {
		return nil, errors.Join(fmt.Errorf("scope %s was just unmounted: %w", name, errdefs.ErrUnavailable), f.Close())
	}
	return f, nil
}

// mount mounts a scope and opens it.
func (m *Mounts) mount(ctx context.Context, name string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	spec := m.cfg.Rule.of(name)
	if m.cfg.Plan != nil {
		plan, err := m.cfg.Plan(ctx, name)
		if err == nil {
			err = spec.allows(plan)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(m.point(name), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create its directory: %w", err)
	}
	if err := m.run(ctx, name, spec); err != nil {
		return nil, err
	}
	m.cfg.Logger.Info("scope mounted", "scope", name, "type", spec.Type, "source", spec.Source)
	f, err := m.mounted(name)
	if f == nil && err == nil {
		err = fmt.Errorf("mount succeeded, but nothing is mounted: %w", errdefs.ErrUnavailable)
	}
	return f, err
}

// run calls mount(8), which finds the helpers of network file systems.
func (m *Mounts) run(ctx context.Context, name string, spec Spec) error {
	cmd := exec.CommandContext(ctx, "mount", "-t", spec.Type, "-o", strings.Join(spec.Options, ","), "--", spec.Source, m.point(name))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second // a helper may keep the output open
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(string(out), m.point(name), name)), "\n")
	if ctx.Err() != nil {
		said = fmt.Sprintf("no answer within %v", timeout)
	}
	if said == "" {
		said = err.Error()
	}
	return fmt.Errorf("mount %s %s: %.300s: %w", spec.Type, spec.Source, said, errdefs.ErrUnavailable)
}
