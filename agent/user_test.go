package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/foldergroup"
)

// user checks that the command, additional commands and terminals of a container run as the user of
// the request.
func (n *node) user(t *testing.T, volume string) {
	for _, dir := range []string{"u/own", "u/shared"} {
		if err := os.MkdirAll(filepath.Join(volume, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	as := func(args ...string) *agentpb.CreateKernelRequest {
		r := n.request(args...)
		r.HasUser, r.Uid, r.Gid, r.Gids = true, 4321, 1234, []uint32{1234, 5678}
		r.Mounts = []*agentpb.Mount{
			{Volume: "home", Path: "u/own", Target: "/home/work/own", Own: true},
			{Volume: "home", Path: "u/shared", Target: "/home/work/shared"},
		}
		return r
	}
	batch := as("id")
	n.create(t, batch)
	if out := n.output(t, batch.KernelId); out != "4321 1234\n" {
		t.Errorf("the command runs as %q", out)
	}
	idle := as()
	n.start(t, idle)
	defer n.end(t, idle.KernelId, time.Second)
	for _, c := range []struct{ args, want string }{
		{"id", "4321 1234\n"}, {"groups", "[1234 5678 2000000000]\n"},
		{"write /home/work/file x", ""}, {"write /home/work/own/file x", ""},
	} {
		if out, code := n.exec(t, idle.KernelId, "", strings.Fields(c.args)...); out != c.want || code != 0 {
			t.Errorf("%s: %q, exit code %d", c.args, out, code)
		}
	}
	if out, code := n.exec(t, idle.KernelId, "", "write", "/home/work/shared/file", "x"); code == 0 {
		t.Errorf("wrote to a folder of root: %q", out)
	}
	if out, _ := n.exec(t, idle.KernelId, "", "cat", "/proc/self/status"); !strings.Contains(out, "CapEff:\t0000000000000000\n") {
		t.Error("capabilities of an ordinary user")
	}
	st, err := os.Stat(filepath.Join(volume, "u/own/file"))
	if err != nil {
		t.Fatal(err)
	}
	if sys := st.Sys().(*syscall.Stat_t); sys.Uid != 4321 || sys.Gid != 1234 {
		t.Errorf("the file on the volume is of %d:%d", sys.Uid, sys.Gid)
	}
	n.colleagues(t, volume)
}

// colleagues checks that users with different user ids can change each other's files in a folder of
// the folder group, with any umask.
func (n *node) colleagues(t *testing.T, volume string) {
	dir := filepath.Join(volume, "p/theirs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := foldergroup.Root(root); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, uid := range []uint32{4321, 5432} {
		r := n.request()
		r.HasUser, r.Uid, r.Gid = true, uid, uid
		r.Mounts = []*agentpb.Mount{{Volume: "home", Path: "p/theirs", Target: "/home/work/theirs"}}
		n.start(t, r)
		defer n.end(t, r.KernelId, time.Second)
		ids = append(ids, r.KernelId)
	}
	for _, c := range []struct {
		who  int
		args string
	}{
		{0, "write /home/work/theirs/file first"}, {1, "write /home/work/theirs/file second"},
		{1, "mkdir /home/work/theirs/sub"}, {0, "write /home/work/theirs/sub/file first"}, {1, "write /home/work/theirs/sub/file second"},
	} {
		if out, code := n.exec(t, ids[c.who], "", strings.Fields(c.args)...); code != 0 {
			t.Errorf("person %d: %s: %q, exit code %d", c.who, c.args, out, code)
		}
	}
	for file, uid := range map[string]uint32{"file": 4321, "sub": 5432, "sub/file": 4321} {
		st, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if sys := st.Sys().(*syscall.Stat_t); sys.Uid != uid || sys.Gid != foldergroup.ID {
			t.Errorf("%s is of %d:%d", file, sys.Uid, sys.Gid)
		}
	}
}
