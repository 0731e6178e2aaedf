package faults

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// limited creates a session whose containers have a small disk.
func limited(t *testing.T, u *cluster.User, bytes int64) *client.Session {
	t.Helper()
	in := cluster.Interactive()
	in.DiskBytes = &bytes
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	return s
}

// A session fills its disk in every writable place. It reaches its limit, and another session on
// the machine can still write.
func TestSessionFillsItsDisk(t *testing.T) {
	u := platform.User(t)
	full, other := limited(t, u, 96<<20), limited(t, u, 96<<20)
	for _, at := range []string{"/home/work", "/", "/tmp", "/var/tmp", "/root"} {
		// Each place is tried separately, because all places share one limit.
		out, code := u.Exec(full.ID, "mkdir -p "+at+" && dd if=/dev/zero of="+at+"/f bs=1M count=110 2>&1; c=$?; wc -c < "+at+"/f; rm "+at+"/f; exit $c")
		if code == 0 || !strings.Contains(out, "No space left on device") && !strings.Contains(out, "quota exceeded") {
			t.Errorf("110 MiB in %s: exit code %d\n%s", at, code, out)
		}
	}
	if out, code := u.Exec(full.ID, "dd if=/dev/zero of=/home/work/a bs=1M count=60 2>/dev/null && ! dd if=/dev/zero of=/b bs=1M count=60 2>/dev/null"); code != 0 {
		t.Errorf("60 MiB each in /home/work and /: %s", out)
	}
	out, code := u.Exec(full.ID, "! dd if=/dev/zero of=/etc/hosts bs=1M count=60 2>&1; wc -c < /etc/hosts")
	if code != 0 {
		t.Errorf("/etc/hosts grows on the machine's disk: %s", out)
	}
	if out, code := u.Exec(other.ID, "dd if=/dev/zero of=/home/work/f bs=1M count=60 2>&1"); code != 0 {
		t.Errorf("the other session cannot write: %s", out)
	}
	if out, _ := u.Exec(full.ID, "df -m / | tail -1 | awk '{print ($2 <= 96)}'"); strings.TrimSpace(out) != "1" {
		t.Errorf("df shows another disk than the session's own: %s", out)
	}
	u.End(full.ID)
	u.End(other.ID)
}

// A session creates as many files as it can. It ends at the number of inodes that its disk limit
// allows.
func TestSessionFloodsInodes(t *testing.T) {
	u := platform.User(t)
	s := limited(t, u, 64<<20)
	out, code := u.Exec(s.ID, "cd /home/work && i=0; while [ $i -lt 4000 ] && true > f$i; do i=$((i+1)); done 2>/dev/null; echo $i; [ $i -lt 4000 ]")
	if code != 0 {
		t.Errorf("files created: %s", out)
	}
	u.End(s.ID)
}

// A command that fails because the disk is full ends its session with that reason, and the reason
// contains the limit.
func TestDiskExceeded(t *testing.T) {
	u := platform.User(t)
	in := cluster.Batch("dd if=/dev/zero of=/tmp/f bs=1M count=110")
	in.DiskBytes = new(int64(64 << 20))
	s := u.Run(in)
	u.Until(s.ID, "TERMINATED")
	end := u.Show(s.ID)
	if end.TerminationReason == nil || *end.TerminationReason != "DISK_EXCEEDED" || end.DiskBytes != 64<<20 {
		t.Errorf("ended as %v with a disk of %d: %s", end.TerminationReason, end.DiskBytes, end.StatusMessage)
	}
	if out := u.Shell().Must("session", "show", s.Name); !strings.Contains(out, "64 MiB") {
		t.Errorf("berth session show:\n%s", out)
	}
}

// A session needs a policy to get more disk than the default.
func TestDiskOfPolicy(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	if r := berth.Run("run", "--disk", "30g", "minimal:1", "--", "true"); r.Code == 0 || !strings.Contains(r.Stderr, "20 GiB") {
		t.Errorf("30 GiB without a policy: %d %s", r.Code, r.Stderr)
	}
	admin := platform.UserAs(t, "SUPERADMIN").Shell()
	name := "disk-" + strings.ToLower(u.Email[:strings.IndexByte(u.Email, '@')])
	admin.Must("admin", "policy", "create", name, "--disk", "1g")
	admin.Must("admin", "policy", "attach", name, "--user", u.Email)
	if r := berth.Run("run", "--disk", "2g", "minimal:1", "--", "true"); r.Code == 0 || !strings.Contains(r.Stderr, name) {
		t.Errorf("2 GiB with a policy of 1 GiB: %d %s", r.Code, r.Stderr)
	}
	if s := u.Run(cluster.Batch("true")); u.Show(s.ID).DiskBytes != 1<<30 {
		t.Errorf("the default under a policy of 1 GiB is %d", u.Show(s.ID).DiskBytes)
	}
}

// A folder contains a link, and another folder is to be mounted at a path behind that link, in a
// directory of the host's system. The session fails once with a reason, and nothing is mounted.
func TestMountBehindLink(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	berth.Must("folder", "create", "linked")
	in := cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: "linked"}}
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	if out, code := u.Exec(s.ID, "cd /home/work/linked && ln -s /etc lnketc && ln -s /proc lnkproc && ln -s / root && mkdir plain"); code != 0 {
		t.Fatal(out)
	}
	u.End(s.ID)
	for _, target := range []string{"lnketc/xx", "lnkproc/xx", "root/x", "root/usr/local/bin"} {
		in := cluster.Interactive()
		in.Mounts = []client.MountInput{{Vfolder: "linked"}, {Vfolder: "linked", Target: "/home/work/linked/" + target}}
		s := u.Run(in)
		u.Until(s.ID, "ERROR")
		end := u.Show(s.ID)
		if !strings.Contains(end.StatusMessage, "symbolic link") {
			t.Errorf("%s: %s", target, end.StatusMessage)
		}
		for _, e := range end.History {
			if e.Result == "RETRY" {
				t.Errorf("%s: tried again: %+v", target, e)
			}
		}
	}
	in = cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: "linked"}, {Vfolder: "linked", Target: "/home/work/linked/plain/deeper"}}
	s = u.Run(in)
	u.Until(s.ID, "RUNNING")
	u.End(s.ID)
	berth.Must("folder", "delete", "--yes", "linked")
}
