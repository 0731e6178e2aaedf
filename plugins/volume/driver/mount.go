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

// Mount is the directory where a volume is mounted, as it was when the volume was
// opened. It holds nothing open between calls, which would keep the file system
// from being unmounted, and each time proves that the path still leads there:
// after an unmount it is a bare directory that must stay empty.
type Mount struct {
	path string

	late atomic.Int32 // questions that are not answered though no one waits any more

	mu   sync.Mutex
	seen identity
}

// identity is what tells one mounted file system from another.
type identity struct {
	dev, inode uint64
	mount      uint64 // id of the mount; another one may be the same file system
	root       string // of mountinfo, with the next two
	fsType     string
	source     string
	options    string // of the file system
}

// OpenMount looks at what is mounted at an absolute path.
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

// Path is where the volume is mounted.
func (m *Mount) Path() string { return m.path }

// FSType is the type of the mounted file system as mount(8) calls it, Source what
// is mounted: a device, or "server:/export".
func (m *Mount) FSType() string { return m.identity().fsType }

// Source is what is mounted.
func (m *Mount) Source() string { return m.identity().source }

// Exported refuses, where the mount is NFS, another path of the server than this.
func (m *Mount) Exported(path string) error {
	if strings.HasPrefix(m.FSType(), "nfs") && !strings.HasSuffix(m.Source(), ":"+path) {
		return status.Errorf(codes.FailedPrecondition, "mount_path: %s is mounted there, and not %s", m.Source(), path)
	}
	return nil
}

// Options are those that the file system was mounted with, as mount(8) shows them; ""
// for those without a value.
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

// Root opens the volume for one call, after proving that it is the one that was
// opened; FAILED_PRECONDITION else. The caller closes it soon.
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

// Mounted is Root for those who only want to know.
func (m *Mount) Mounted() error {
	f, err := m.Root()
	if err != nil {
		return err
	}
	return f.Close()
}

// answerTime is what a file system has to answer. One on a network whose server
// is gone holds a call, and the thread that made it, until the server is back.
const answerTime = 10 * time.Second

// answer asks the file system without waiting forever, and not again while an
// earlier question is open: those that wait would become ever more. drop takes
// an answer that comes too late.
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

// place is an open directory and what it is.
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
	// Of what is open: no one can put another mount there in between.
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return place{}, errors.Join(fmt.Errorf("stat %s: %w", m.path, err), f.Close())
	}
	return place{f, identity{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), inode: st.Ino, mount: st.Mnt_id}}, nil
}

func (m *Mount) same(now identity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := status.Errorf(codes.FailedPrecondition, "volume is not mounted: %s is no longer what was opened", m.path)
	if now.dev != m.seen.dev || now.inode != m.seen.inode {
		return gone
	}
	if now.mount == m.seen.mount {
		return nil
	}
	// Mounted again, or another file system with the same numbers.
	if err := now.explain(); err != nil {
		return Error("volume", err)
	}
	if now.root != m.seen.root || now.fsType != m.seen.fsType || now.source != m.seen.source {
		return gone
	}
	m.seen = now
	return nil
}

// explain fills in what the kernel says about the mount.
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
	return nil // of another namespace: dev and inode must do
}

// Statfs asks the mounted file system.
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

// Writable asks the file system whether this process may make something at the top: one
// on a network may have given it fewer rights than it looks.
func (m *Mount) Writable() error {
	root, err := m.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	return Error("access", unix.Faccessat2(int(root.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
}

// Health is what statfs tells. A volume embeds it or begins its own with it.
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

// elastic is what file systems that grow by themselves say is their size: 8 EiB,
// give or take a block.
const elastic = 1 << 62

// Capacity is what statfs tells.
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
	if st.Files > 0 { // btrfs has no fixed number of inodes and says 0
		total, used := int64(st.Files), int64(st.Files-st.Ffree)
		c.TotalInodes, c.UsedInodes = &total, &used
	}
	return c, nil
}

// bytes is a number of blocks in bytes, or the largest number there is.
func bytes(blocks uint64, size int64) int64 {
	const most = 1<<63 - 1
	if blocks > most/uint64(size) {
		return most
	}
	return int64(blocks) * size
}
