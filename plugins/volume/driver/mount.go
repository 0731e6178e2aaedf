package driver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Mount identifies the file system that was mounted when the volume was opened. It keeps no file
// open between calls, which would prevent unmounting. Each call verifies that the path is still
// that file system: after an unmount it is an empty directory that must stay empty.
type Mount struct {
	path string

	late atomic.Int32 // unanswered system calls whose callers have given up

	mu   sync.Mutex
	seen identity
}

// identity distinguishes one mounted file system from another.
type identity struct {
	dev, inode uint64
	mount      uint64 // id of the mount; another mount can be the same file system
	root       string // from mountinfo, like the next two
	fsType     string
	source     string
	options    string // of the file system
}

// OpenMount identifies the file system that is mounted at an absolute path.
func OpenMount(path string) (*Mount, error) {
	m := &Mount{path: path}
	f, seen, err := m.look()
	if err != nil {
		return nil, Error("mount_path", err)
	}
	defer f.Close()
	if err := seen.explain(); err != nil {
		return nil, Error("mount_path", err)
	}
	m.seen = seen
	return m, nil
}

// Path returns the mount point of the volume.
func (m *Mount) Path() string { return m.path }

// FSType returns the type of the mounted file system, as in mount(8).
func (m *Mount) FSType() string { return m.identity().fsType }

// Source returns the mounted device, or "server:/export".
func (m *Mount) Source() string { return m.identity().source }

// Exported returns an error if the mount is NFS and its path on the server differs from path.
func (m *Mount) Exported(path string) error {
	if strings.HasPrefix(m.FSType(), "nfs") && !strings.HasSuffix(m.Source(), ":"+path) {
		return status.Errorf(codes.FailedPrecondition, "mount_path: %s is mounted there instead of %s", m.Source(), path)
	}
	return nil
}

// Options returns the mount options of the file system, as in mount(8), with "" for options without
// a value.
func (m *Mount) Options() map[string]string {
	out := map[string]string{}
	for o := range strings.SplitSeq(m.identity().options, ",") {
		name, value, _ := strings.Cut(o, "=")
		out[name] = value
	}
	return out
}

func (m *Mount) identity() identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// Root verifies the file system and opens its top directory for one call. It returns
// FAILED_PRECONDITION if another file system or none is mounted. The caller must close the file
// soon.
func (m *Mount) Root() (*os.File, error) {
	f, now, err := m.look()
	if err != nil {
		return nil, Error("volume", err)
	}
	if err := m.same(now); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Mounted returns the error of Root.
func (m *Mount) Mounted() error {
	f, err := m.Root()
	if err != nil {
		return err
	}
	return f.Close()
}

// answerTime limits the wait for a file system. A network file system whose server is unreachable
// blocks a call and its thread until the server responds.
const answerTime = 10 * time.Second

// answer runs a call of the file system with a time limit. It refuses to run another while an
// earlier one is still blocked, so that blocked threads do not accumulate. drop releases a result
// that arrives too late.
func answer[T any](m *Mount, ask func() (T, error), drop func(T)) (out T, err error) {
	if m.late.Load() > 0 {
		return out, Retryable(busy, "%s does not answer", m.path)
	}
	type result struct {
		out T
		err error
	}
	answered := make(chan result, 1)
	go func() {
		var r result
		r.out, r.err = ask()
		answered <- r
	}()
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	select {
	case r := <-answered:
		return r.out, r.err
	case <-timer.C:
	}
	m.late.Add(1)
	go func() {
		if r := <-answered; r.err == nil {
			drop(r.out)
		}
		m.late.Add(-1)
	}()
	return out, Retryable(busy, "%s has not answered for %v", m.path, answerTime)
}

// place is an open directory with its identity.
type place struct {
	*os.File
	identity
}

func (m *Mount) look() (*os.File, identity, error) {
	p, err := answer(m, m.open, func(p place) { p.Close() })
	return p.File, p.identity, err
}

func (m *Mount) open() (place, error) {
	fd, err := unix.Open(m.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{}, fmt.Errorf("open %s: %w", m.path, err)
	}
	f := os.NewFile(uintptr(fd), m.path)
	var st unix.Statx_t
	// These calls use the open file, so that another mount at the path cannot interfere.
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return place{}, errors.Join(fmt.Errorf("stat %s: %w", m.path, err), f.Close())
	}
	return place{f, identity{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), inode: st.Ino, mount: st.Mnt_id}}, nil
}

func (m *Mount) same(now identity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := status.Errorf(codes.FailedPrecondition, "volume is not mounted: %s is no longer the file system that was opened", m.path)
	if now.dev != m.seen.dev || now.inode != m.seen.inode {
		return gone
	}
	if now.mount == m.seen.mount {
		return nil
	}
	// The file system was mounted again, or another one has the same numbers.
	if err := now.explain(); err != nil {
		return Error("volume", err)
	}
	if now.root != m.seen.root || now.fsType != m.seen.fsType || now.source != m.seen.source {
		return gone
	}
	m.seen = now
	return nil
}

// explain adds the kernel's information about the mount.
func (i *identity) explain() error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	// 36 35 98:0 /root /mount options [tag…] - type source superoptions
	for lines := bufio.NewScanner(f); lines.Scan(); {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 5 || len(r) < 2 || l[0] != strconv.FormatUint(i.mount, 10) {
			continue
		}
		i.root, i.fsType, i.source, i.options = l[3], r[0], r[1], strings.Join(r[2:], " ")
		return nil
	}
	return nil // it belongs to another namespace: device and inode must suffice
}

// Statfs returns the statistics of the mounted file system.
func (m *Mount) Statfs() (unix.Statfs_t, error) {
	f, err := m.Root()
	if err != nil {
		return unix.Statfs_t{}, err
	}
	defer f.Close()
	return answer(m, func() (st unix.Statfs_t, err error) {
		return st, Error("statfs", unix.Fstatfs(int(f.Fd()), &st))
	}, func(unix.Statfs_t) {})
}

// Writable checks that this process can create entries at the top of the volume. A network file
// system can deny this although the permissions allow it.
func (m *Mount) Writable() error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	return Error("access", unix.Faccessat2(int(root.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
}

// Health returns a report from statfs. A volume embeds this method or calls it in its own.
func (m *Mount) Health(context.Context) (*pb.HealthReport, error) {
	st, err := m.Statfs()
	if err != nil {
		return &pb.HealthReport{State: pb.HealthReport_UNAVAILABLE, Reason: status.Convert(err).Message()}, nil
	}
	h := &pb.HealthReport{State: pb.HealthReport_HEALTHY, Metadata: map[string]string{"fs_type": m.FSType()}}
	switch {
	case st.Flags&unix.ST_RDONLY != 0:
		h.State, h.Reason = pb.HealthReport_DEGRADED, "mounted read-only"
	case st.Blocks > 0 && st.Bavail == 0:
		h.State, h.Reason = pb.HealthReport_DEGRADED, "no space left"
	case st.Files > 0 && st.Ffree == 0:
		h.State, h.Reason = pb.HealthReport_DEGRADED, "no inodes left"
	}
	return h, nil
}

// elastic is the threshold of the size that file systems without a fixed size report, about 8 EiB.
const elastic = 1 << 62

// Capacity returns the capacity from statfs.
func (m *Mount) Capacity(context.Context) (*pb.CapacityReport, error) {
	st, err := m.Statfs()
	if err != nil {
		return nil, err
	}
	size := max(st.Frsize, 1)
	c := &pb.CapacityReport{
		TotalBytes: bytes(st.Blocks, size), UsedBytes: bytes(st.Blocks-st.Bfree, size), AvailableBytes: bytes(st.Bavail, size),
		AsOfUnixMs: time.Now().UnixMilli(),
	}
	c.Elastic = c.TotalBytes >= elastic
	if st.Files > 0 { // btrfs has no fixed number of inodes and reports 0
		total, used := int64(st.Files), int64(st.Files-st.Ffree)
		c.TotalInodes, c.UsedInodes = &total, &used
	}
	return c, nil
}

// bytes converts a number of blocks to bytes, or returns the largest number if the result is
// larger.
func bytes(blocks uint64, size int64) int64 {
	const most = 1<<63 - 1
	if blocks > most/uint64(size) {
		return most
	}
	return int64(blocks) * size
}
