package sshd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// empty returns the configuration of a host whose image contains only the runner, and the image's
// root directory.
func empty(t *testing.T) (config_, root string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "opt/berth"), 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "opt/berth/runner"), raw, 0o755); err != nil {
		t.Fatal(err)
	}
	return behind(t, []string{"env", "-i", need(t, "chroot"), root, "/opt/berth/runner", "sshd"}), root
}

// SFTP and forwards need nothing from the image. A shell is refused with the reason.
func TestEmptyImage(t *testing.T) {
	config, root := empty(t)
	for name, args := range map[string][]string{
		"shell": {"host"}, "terminal": {"-tt", "host"}, "pipe": {"host", "a | b"}, "variable": {"host", "echo $HOME"},
	} {
		r := run(t, "", append([]string{"ssh", "-F", config}, args...)...)
		if r.Code != 127 && r.Code != 255 || !strings.Contains(r.Err+r.Out, "the image has no shell") && name != "terminal" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := run(t, "", "ssh", "-F", config, "host", "ls -l"); r.Code != 127 || !strings.Contains(r.Err, "ls: file does not exist") {
		t.Errorf("missing program: %+v", r)
	}
	if r := run(t, "", "ssh", "-F", config, "host", `"/opt/berth"/runner 'log'`); r.Code != 2 || !strings.Contains(r.Err, "berth-runner init") {
		t.Errorf("a program that needs no shell: %+v", r)
	}
	src, content := random(t, 1_000_000)
	for _, protocol := range []string{"-s", "-O"} {
		back := filepath.Join(t.TempDir(), "back")
		must(t, "", "scp", "-q", protocol, "-F", config, src, "host:/file"+protocol)
		same(t, filepath.Join(root, "file"+protocol), content)
		must(t, "", "scp", "-q", protocol, "-F", config, "host:/fil?"+protocol, back)
		same(t, back, content)
	}
	must(t, "put "+src+" /by-sftp\n", "sftp", "-q", "-F", config, "-b", "-", "host")
	same(t, filepath.Join(root, "by-sftp"), content)
	there, local := echo(t, "tcp", "127.0.0.1:0"), freePort(t)
	_, errs := background(t, "ssh", "-F", config, "-v", "-N", "-L", local+":"+there, "host")
	for line := ""; !strings.Contains(line, "Entering interactive session"); {
		var err error
		if line, err = errs.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := asks("tcp", local, "forward"); got != "FORWARD" {
		t.Errorf("forward: %q, %v", got, err)
	}
}

// The runner's scp leaves the same tree, and reports the same errors, as OpenSSH's.
func TestCopies(t *testing.T) {
	tree := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/x.sh": 0o755, "a/secret": 0o600, "a/b/deep": 0o644, "a/empty": 0o644, "a/with space": 0o640} {
		path := filepath.Join(tree, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte("content of "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "", "touch", "-d", "2001-02-03 04:05:06", tree+"/a/x.sh", tree+"/a/b")
	list := func(dir string) string {
		return must(t, "", "sh", "-c", "cd "+dir+" && find . -type f -printf '%P %m %s %TY\\n' -o -printf '%P %m\\n' | sort; find . -type f | sort | xargs -d '\\n' cat")
	}
	theirs := real(t)
	withoutSCP := t.TempDir() // a search path with all programs of the tests except scp
	for _, name := range []string{"sh", "bash", "cat"} {
		if err := os.Symlink(need(t, name), filepath.Join(withoutSCP, name)); err != nil {
			t.Fatal(err)
		}
	}
	own := behind(t, []string{"env", "PATH=" + withoutSCP, program, "sshd"})
	for _, c := range []struct {
		name string
		args []string
	}{
		{"up", []string{"-r", "TREE/a", "host:DIR/new"}},
		{"up into a directory", []string{"-r", "TREE/a", "host:DIR"}},
		{"up with times", []string{"-rp", "TREE/a", "host:DIR"}},
		{"down", []string{"-r", "host:TREE/a", "DIR/new"}},
		{"down with times", []string{"-rp", "host:TREE/a", "DIR"}},
		{"down by a pattern", []string{"host:TREE/a/[sx]*", "DIR"}},
		{"several up", []string{"TREE/a/x.sh", "TREE/a/secret", "host:DIR"}},
		{"a name with a space", []string{"host:'TREE/a/with space'", "DIR"}},
		{"a directory without -r", []string{"host:TREE/a", "DIR"}},
		{"missing", []string{"host:TREE/none", "host:TREE/a/secret", "DIR"}},
		{"several up to a missing directory", []string{"TREE/a/x.sh", "TREE/a/secret", "host:DIR/none"}},
		{"up to a missing directory", []string{"TREE/a/x.sh", "host:DIR/none/x"}},
		{"over a directory", []string{"-r", "TREE/a", "host:/etc/hostname"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := func(config string) (result, string) {
				dir := t.TempDir()
				args := []string{"scp", "-q", "-O", "-F", config}
				for _, a := range c.args {
					args = append(args, strings.NewReplacer("TREE", tree, "DIR", dir).Replace(a))
				}
				r := run(t, "", args...)
				r.Err = strings.ReplaceAll(r.Err, dir, "DIR")
				return r, list(dir)
			}
			want, wantTree := answer(theirs)
			got, gotTree := answer(own)
			if diff := cmp.Diff(wantTree, gotTree); diff != "" {
				t.Errorf("OpenSSH's server -, ours +\n%s", diff)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("OpenSSH's server -, ours +\n%s", diff)
			}
		})
	}
}
