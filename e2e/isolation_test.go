package e2e

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// A terminal runs as the user that its owner has in containers, on its own pseudo-terminal,
// regardless of the image.
func TestTerminalIsItsUsers(t *testing.T) {
	u := platform.User(t)
	platform.Admin(t).Query(`mutation($id: ID!) { updateUser(input: {id: $id, containerUid: 4242, containerGid: 4343, containerGids: [5151]}) { user { id } } }`,
		map[string]any{"id": u.ID}, &struct{}{})
	s := u.Run(cluster.Interactive())
	u.Until(s.ID, "RUNNING")
	const script = `id -u; id -g; id -G; touch /home/work/mine && stat -c %u:%g /home/work/mine; grep -E "CapEff|NoNewPrivs" /proc/self/status | tr -d "\t"`
	want := []string{"4242", "4343", "5151", "4242:4343", "CapEff:0000000000000000"}
	for _, tty := range []bool{true, false} {
		ctx, cancel := context.WithTimeout(t.Context(), cluster.Timeout)
		defer cancel()
		run := script
		if tty {
			run = `tty; stat -c "tty of %u" $(tty); ` + script
		}
		term, err := u.OpenTerminal(ctx, client.TerminalOptions{Session: s.ID, Command: []string{"sh", "-c", run}, TTY: tty})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code, err := term.Output(ctx, &out, &out)
		term.Close()
		if err != nil || code != 0 {
			t.Fatalf("%v, exit code %d: %s", err, code, out.String())
		}
		for _, one := range want {
			if !strings.Contains(out.String(), one) {
				t.Errorf("terminal %v: no %q in %s", tty, one, out.String())
			}
		}
		if tty && (!strings.Contains(out.String(), "/dev/pts/") || !strings.Contains(out.String(), "tty of 4242")) {
			t.Errorf("the terminal belongs to another user: %s", out.String())
		}
	}
	u.End(s.ID)
}

// No operation of a container changes a folder that is mounted read-only.
func TestReadOnlyFolderStaysAsItIs(t *testing.T) {
	u := platform.User(t)
	if _, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	fill := cluster.Interactive()
	fill.Mounts = []client.MountInput{{Vfolder: "kept", Target: "/data"}}
	writer := u.Run(fill)
	u.Until(writer.ID, "RUNNING")
	if out, code := u.Exec(writer.ID, "mkdir /data/dir && echo kept > /data/file && echo kept > /data/dir/file && chmod 600 /data/file"); code != 0 {
		t.Fatal(out)
	}
	in := cluster.Interactive()
	in.Mounts = []client.MountInput{{Vfolder: "kept", Target: "/data", ReadOnly: true}}
	reader := u.Run(in)
	u.Until(reader.ID, "RUNNING")
	for _, script := range []string{
		"echo x > /data/file", "echo x >> /data/file", ": > /data/new", "mkdir /data/new", "mv /data/file /data/other", "mv /data/dir /data/other",
		"chmod 777 /data/file", "chmod 777 /data", "chown 1:1 /data/file", "rm /data/file", "rm -rf /data/dir", "ln /data/file /data/link", "ln -s /etc /data/link",
		"touch /data/file", "dd if=/dev/zero of=/data/file bs=1 count=1 conv=notrunc", "truncate -s 0 /data/file", "mknod /data/dev c 1 3", "mkfifo /data/pipe",
		"mount -o remount,rw /data", "mount -o remount,bind,rw /data", "mount --bind /tmp /data", "umount /data",
	} {
		if out, code := u.Exec(reader.ID, script); code == 0 {
			t.Errorf("%q is allowed: %s", script, out)
		}
	}
	if out, code := u.Exec(writer.ID, "cat /data/file /data/dir/file; ls /data /data/dir; stat -c %a /data/file"); code != 0 || out != "kept\nkept\n/data:\ndir\nfile\n\n/data/dir:\nfile\n600\n" {
		t.Errorf("the folder is now: %s", out)
	}
	u.End(reader.ID)
	u.End(writer.ID)
}

// A container reaches no process of the machine: it has no socket of the agent or of a plugin, and
// no credential for one.
func TestContainerReachesNoAgent(t *testing.T) {
	u := platform.User(t)
	s := u.Run(cluster.Interactive())
	u.Until(s.ID, "RUNNING")
	if out, code := u.Exec(s.ID, `find / -xdev \( -type s -o -name "*.sock" \) 2>/dev/null; grep -E "berth|agent|plugin" /proc/net/unix`); strings.TrimSpace(out) != "" {
		t.Errorf("exit code %d, sockets: %s", code, out)
	}
	if out, _ := u.Exec(s.ID, "env"); strings.Contains(out, "brt_") || strings.Contains(out, "join-") {
		t.Error("a credential is in the environment")
	}
	u.End(s.ID)
}
