package project

import (
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

// session is the user of a container: not root, no capabilities.
const session = 65534

var magics = map[string]int64{"xfs": unix.XFS_SUPER_MAGIC, "ext4": unix.EXT4_SUPER_MAGIC}

// bed is an open volume on a real file system.
type bed struct {
	*testing.T
	*Volume
	fs string
}

// each runs f in every environment, on xfs and on ext4.
func each(t *testing.T, f func(bed)) {
	t.Helper()
	m := vmtest.Machine{Machine: testvm.Machine{Disks: []testvm.Disk{testvm.XFS("xfs"), testvm.Ext4("ext4")}}}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		for fs := range magics {
			t.Run(fs, func(t *testing.T) { f(bed{t, reopen(t, p.Mount(fs), fs), fs}) })
		}
	})
}

func reopen(t *testing.T, at, fs string) *Volume {
	t.Helper()
	m, err := driver.OpenMount(at)
	if err != nil {
		t.Fatal(err)
	}
	v, err := open(m, fs, magics[fs])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v.(*Volume)
}

func limit(bytes, inodes int64) *pb.Limit {
	l := &pb.Limit{}
	if bytes >= 0 {
		l.Bytes = &bytes
	}
	if inodes >= 0 {
		l.Inodes = &inodes
	}
	return l
}

func name32(name string) string { return fmt.Sprintf("%x", md5.Sum([]byte(name))) }

// scope creates a scope that the session's user owns.
func (b bed) scope(name string, l *pb.Limit) string {
	b.Helper()
	id := name32(name)
	if err := b.CreateScope(b.Context(), id, l); err != nil {
		b.Fatal(err)
	}
	if err := b.OwnScope(id, session, session); err != nil {
		b.Fatal(err)
	}
	return id
}

func (b bed) get(scope string) *pb.Scope {
	b.Helper()
	s, err := b.GetScope(b.Context(), scope)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// as runs a shell in the scope, and returns its output and whether it failed.
func (b bed) as(uid uint32, scope, script string) (string, bool) {
	b.Helper()
	c := exec.Command("/bin/sh", "-c", script)
	c.Dir = filepath.Join(b.Path(), scope)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := c.CombinedOutput()
	return string(out), err != nil
}

// onDisk returns the allocated bytes according to du.
func (b bed) onDisk(scope string) int64 {
	b.Helper()
	out, err := exec.Command("du", "-s", "--block-size=1", filepath.Join(b.Path(), scope)).Output()
	if err != nil {
		b.Fatal(err)
	}
	var n int64
	if _, err := fmt.Sscan(string(out), &n); err != nil {
		b.Fatal(err)
	}
	return n
}

func write(name string, mib int) string {
	return fmt.Sprintf("dd if=/dev/zero of=%s bs=64k count=%d conv=fsync 2>&1", name, mib*16)
}

// TestVMBytesAreRefused checks that no byte is written beyond the limit, and more after it was
// raised.
func TestVMBytesAreRefused(t *testing.T) {
	each(t, func(b bed) {
		const at = 20 << 20
		s := b.scope("bytes", limit(at, -1))
		out, failed := b.as(session, s, write("a", 40))
		if !failed || !strings.Contains(out, "No space left") && !strings.Contains(out, "quota exceeded") {
			b.Errorf("40 MiB below a limit of 20 MiB: %s", out)
		}
		if n := b.onDisk(s); n > at || n < at-1<<20 {
			b.Errorf("%d bytes are on disk, the limit is %d", n, at)
		}
		if got := b.get(s); got.GetUsedBytes() > at || got.GetUsedBytes() < at-1<<20 || !got.Exact || got.Limit.GetBytes() != at || got.Limit.Inodes != nil {
			b.Errorf("scope %v", got)
		}
		if err := b.SetScopeLimit(b.Context(), s, limit(60<<20, -1)); err != nil {
			b.Fatal(err)
		}
		if out, failed := b.as(session, s, write("b", 30)); failed {
			b.Errorf("after the limit was raised: %s", out)
		}
		if err := b.SetScopeLimit(b.Context(), s, limit(-1, -1)); err != nil {
			b.Fatal(err)
		}
		if out, failed := b.as(session, s, write("c", 40)); failed {
			b.Errorf("without a limit: %s", out)
		}
	})
}

// TestVMRootIsStoppedByXFSAlone verifies docs/storage/ext4.md.
func TestVMRootIsStoppedByXFSAlone(t *testing.T) {
	each(t, func(b bed) {
		s := b.scope("root", limit(4<<20, -1))
		if out, failed := b.as(0, s, write("a", 8)); failed != (b.fs == "xfs") {
			b.Errorf("root wrote 8 MiB below a limit of 4 MiB: %s", out)
		}
	})
}

// TestVMInodesAreRefused checks that exactly the allowed number of files can be created, none with
// zero.
func TestVMInodesAreRefused(t *testing.T) {
	each(t, func(b bed) {
		s := b.scope("inodes", limit(-1, 10))
		out, failed := b.as(session, s, "mkdir d && cd d && for i in 1 2 3 4 5 6 7 8 9 10 11 12; do : > $i || exit 1; done")
		got := b.get(s)
		if !failed || got.GetUsedInodes() != 10 || got.Limit.GetInodes() != 10 || got.Limit.Bytes != nil {
			b.Errorf("13 inodes below a limit of 10: %s, scope %v", out, got)
		}
		none := b.scope("none", limit(-1, 0))
		if out, failed := b.as(session, none, ": > a"); !failed {
			b.Errorf("a file with a limit of no inodes: %s", out)
		}
		if got := b.get(none); got.Limit.Inodes == nil || *got.Limit.Inodes != 0 {
			b.Errorf("scope %v", got)
		}
	})
}

// TestVMLimitsThatCannotBe checks that zero bytes are refused, because 0 means unlimited to the
// kernel, and that partial blocks are rounded to a limit that refuses the same writes.
func TestVMLimitsThatCannotBe(t *testing.T) {
	each(t, func(b bed) {
		s := b.scope("odd", limit(1<<30, -1))
		for _, n := range []int64{0, 1, 4095} {
			if err := b.SetScopeLimit(b.Context(), s, limit(n, -1)); status.Code(err) != codes.InvalidArgument {
				b.Errorf("%d bytes: %v", n, err)
			}
		}
		if got := b.get(s); got.Limit.GetBytes() != 1<<30 {
			b.Errorf("a refused limit was kept: %v", got)
		}
		if err := b.SetScopeLimit(b.Context(), s, limit(1_000_000_000, -1)); err != nil {
			b.Fatal(err)
		}
		if got := b.get(s).Limit.GetBytes(); got > 1_000_000_000 || got <= 1_000_000_000-4096 {
			b.Errorf("1 GB became %d", got)
		}
	})
}

// TestVMNumbersAreTheirOwn checks that no two scopes share a project, however they are created.
func TestVMNumbersAreTheirOwn(t *testing.T) {
	each(t, func(b bed) {
		const n = 48
		dirs, ids := make([]*os.File, n), make([]prjquota.ID, n)
		var all sync.WaitGroup
		for i := range n {
			at := filepath.Join(b.Path(), fmt.Sprint("d", i))
			if err := os.Mkdir(at, 0o755); err != nil {
				b.Fatal(err)
			}
			d, err := os.Open(at)
			if err != nil {
				b.Fatal(err)
			}
			dirs[i] = d
		}
		for i := range n {
			all.Go(func() {
				id, err := allocate(dirs[i], fmt.Sprint("same ", i/4)) // four scopes try the same id first
				if err != nil {
					b.Error(err)
				}
				ids[i] = id
			})
		}
		all.Wait()
		seen := map[prjquota.ID]bool{}
		for i, d := range dirs {
			q, err := prjquota.Get(d, ids[i])
			if seen[ids[i]] || err != nil || q.Inodes != rootInode {
				b.Errorf("directory %d has the project %d of %d inodes, %v", i, ids[i], q.Inodes, err)
			}
			seen[ids[i]] = true
			d.Close()
		}
	})
}

// TestVMTwoProxies checks that processes that create the same scopes concurrently create each once.
func TestVMTwoProxies(t *testing.T) {
	each(t, func(b bed) {
		other := reopen(b.T, b.Path(), b.fs)
		var all sync.WaitGroup
		for i := range 32 {
			v := []*Volume{b.Volume, other}[i%2]
			all.Go(func() {
				if err := v.CreateScope(b.Context(), name32(fmt.Sprint("both ", i/4)), limit(1<<30, -1)); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		seen := map[prjquota.ID]bool{}
		for i := range 8 {
			d, err := b.OpenTree(name32(fmt.Sprint("both ", i)))
			if err != nil {
				b.Fatal(err)
			}
			id, inherited, err := prjquota.Of(d)
			if err != nil || id == 0 || !inherited || seen[id] {
				b.Errorf("scope %d has the project %d, inherited %v, %v", i, id, inherited, err)
			}
			seen[id] = true
			d.Close()
		}
		left, err := os.ReadDir(filepath.Join(b.Path(), driver.Own))
		if err != nil || len(left) > 0 {
			b.Errorf("left over: %v, %v", left, err)
		}
	})
}

// TestVMCutOff checks that the remains of a killed process are used or removed.
func TestVMCutOff(t *testing.T) {
	each(t, func(b bed) {
		id := name32("cut off")
		left := filepath.Join(b.Path(), driver.Own, unfinished(id))
		if err := os.MkdirAll(left, 0o700); err != nil {
			b.Fatal(err)
		}
		d, err := os.Open(left)
		if err != nil {
			b.Fatal(err)
		}
		defer d.Close()
		if err := prjquota.Assign(d, prjquota.Candidate(id, 0)); err != nil {
			b.Fatal(err)
		}
		s := b.scope("cut off", limit(1<<20, -1))
		if got, _, err := prjquota.Of(d); err != nil || got != prjquota.Candidate(id, 0) || b.get(s).Limit.GetBytes() != 1<<20 {
			b.Errorf("project %d, %v; scope %v", got, err, b.get(s))
		}
		if err := b.DeleteScope(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		if q, err := prjquota.Get(d, prjquota.Candidate(id, 0)); err != nil || q.MaxBytes != 0 {
			b.Errorf("after deletion: %+v, %v", q, err)
		}
	})
}

// TestVMQuotasThatAreOff checks that features that a mount lacks are not announced.
func TestVMQuotasThatAreOff(t *testing.T) {
	off, counted, plain := testvm.XFS("off"), testvm.XFS("counted"), testvm.Ext4("plain")
	off.Options, counted.Options, plain.Options = "", "pqnoenforce", ""
	plain.Mkfs = []string{"-q"}
	m := vmtest.Machine{Machine: testvm.Machine{Disks: []testvm.Disk{off, counted, plain}}}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		for disk, fs := range map[string]string{"off": "xfs", "counted": "xfs", "plain": "ext4"} {
			b := bed{t, reopen(t, p.Mount(disk), fs), fs}
			if e := b.Traits(); e.Enforcement != pb.Enforcement_NONE || e.Inodes {
				t.Errorf("%s: %+v", disk, e)
			}
			h, err := b.Health(t.Context())
			if err != nil || h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "prjquota") {
				t.Errorf("%s: %v, %v", disk, h, err)
			}
			s := b.scope(disk, limit(-1, -1))
			if out, failed := b.as(session, s, write("a", 2)); failed {
				t.Errorf("%s: %s", disk, out)
			}
			if got := b.get(s); got.GetUsedBytes() < 2<<20 || got.Limit.Bytes != nil {
				t.Errorf("%s: scope %v", disk, got)
			}
		}
		m, err := driver.OpenMount(p.Mount("plain"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(m, "xfs", unix.XFS_SUPER_MAGIC); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("ext4 taken for xfs: %v", err)
		}
	})
}

// TestVMOwnersLeaveProjects verifies the warning in docs/storage/xfs.md: the owner of a file can
// move it out of its project, unless the container has a user namespace or its seccomp filter
// refuses the call.
func TestVMOwnersLeaveProjects(t *testing.T) {
	each(t, func(b bed) {
		s := b.scope("leave", limit(8<<20, -1))
		if out, failed := b.as(session, s, write("a", 4)+" && chattr -p 0 a"); failed {
			b.Fatalf("the kernel refuses it now, the page can say so: %s", out)
		}
		if got := b.get(s); got.GetUsedBytes() > 1<<20 {
			b.Errorf("scope %v", got)
		}
	})
}
