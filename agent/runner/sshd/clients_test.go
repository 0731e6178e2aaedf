package sshd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// client is an SSH client program. Each field is a command; an empty field is a feature that the
// client lacks. The words HOST, PORT, KNOWN, FINGERPRINT, DIR and SRC are replaced.
type client struct {
	program string
	exec    []string // runs CMD, and passes its stdin and exit code
	pty     []string // like exec, on a terminal
	put     []string // uploads SRC to DIR/put
	get     []string // downloads DIR/put to DIR/got
}

const opts = "-o UserKnownHostsFile=KNOWN -o StrictHostKeyChecking=yes -o LogLevel=ERROR"

var clients = map[string]client{
	"OpenSSH": {"ssh", words("ssh -F none " + opts + " -p PORT HOST CMD"), words("ssh -F none -tt " + opts + " -p PORT HOST CMD"),
		sh("echo put SRC DIR/put | sftp -q -F none " + opts + " -P PORT -b - HOST"),
		sh("sftp -q -F none " + opts + " -P PORT HOST:DIR/put DIR/got")},
	"scp over SFTP": {"scp", nil, nil, sh("scp -s -q -F none " + opts + " -P PORT SRC HOST:DIR/put"),
		sh("scp -s -q -F none " + opts + " -P PORT HOST:DIR/put DIR/got")},
	"scp of the first protocol": {"scp", nil, nil, sh("scp -O -q -F none " + opts + " -P PORT SRC HOST:DIR/put"),
		sh("scp -O -q -F none " + opts + " -P PORT HOST:DIR/put DIR/got")},
	"dropbear": {"dbclient", words("dbclient -y -y -p PORT HOST CMD"), sh(`script -qec "dbclient -t -y -y -p PORT HOST 'CMD'" /dev/null`), nil, nil},
	"PuTTY": {"plink", words("plink -batch -no-antispoof -hostkey FINGERPRINT -P PORT -l u HOST CMD"),
		words("plink -batch -no-antispoof -t -hostkey FINGERPRINT -P PORT -l u HOST CMD"),
		sh("pscp -q -batch -hostkey FINGERPRINT -P PORT -l u SRC HOST:DIR/put"),
		sh("pscp -q -batch -scp -hostkey FINGERPRINT -P PORT -l u HOST:DIR/put DIR/got")},
	"rsync": {"rsync", nil, nil, sh("rsync -a -e 'ssh -F none " + opts + " -p PORT' SRC HOST:DIR/put"),
		sh("rsync -a -e 'ssh -F none " + opts + " -p PORT' HOST:DIR/put DIR/got")},
	"lftp": {"lftp", nil, nil, sh("lftp -c 'set sftp:connect-program \"ssh -a -x -F none " + opts + "\"; open -u u, -p PORT sftp://HOST && put SRC -o DIR/put'"),
		sh("lftp -c 'set sftp:connect-program \"ssh -a -x -F none " + opts + "\"; open -u u, -p PORT sftp://HOST && get DIR/put -o DIR/got'")},
	"sshfs": {"sshfs", nil, nil,
		sh("test -r /dev/fuse && mkdir -p DIR/m && sshfs -F /dev/null " + opts + " -p PORT HOST:DIR DIR/m && cp SRC DIR/m/put; s=$?; fusermount -u DIR/m; exit $s"),
		sh("sshfs -F /dev/null " + opts + " -p PORT HOST:DIR DIR/m && cp DIR/m/put DIR/got; s=$?; fusermount -u DIR/m; exit $s")},
	"paramiko": {"/usr/bin/python3", words("/usr/bin/python3 testdata/paramiko.py PORT KNOWN exec CMD"), words("/usr/bin/python3 testdata/paramiko.py PORT KNOWN pty CMD"),
		words("/usr/bin/python3 testdata/paramiko.py PORT KNOWN put SRC DIR/put"), words("/usr/bin/python3 testdata/paramiko.py PORT KNOWN get DIR/put DIR/got")},
	"asyncssh": {"/usr/bin/python3", words("/usr/bin/python3 -W ignore testdata/asyncssh.py PORT KNOWN exec CMD"), words("/usr/bin/python3 -W ignore testdata/asyncssh.py PORT KNOWN pty CMD"),
		words("/usr/bin/python3 -W ignore testdata/asyncssh.py PORT KNOWN put SRC DIR/put"), words("/usr/bin/python3 -W ignore testdata/asyncssh.py PORT KNOWN get DIR/put DIR/got")},
	"ssh2 of npm": {"node", words("node testdata/node/ssh2.mjs PORT KNOWN exec CMD"), words("node testdata/node/ssh2.mjs PORT KNOWN pty CMD"),
		words("node testdata/node/ssh2.mjs PORT KNOWN put SRC DIR/put"), words("node testdata/node/ssh2.mjs PORT KNOWN get DIR/put DIR/got")},
}

func words(text string) []string { return strings.Fields(text) }
func sh(script string) []string  { return []string{"sh", "-c", script} }

// skipped skips a test if the machine lacks something although the program is installed.
func skipped(t *testing.T, name string) {
	switch name {
	case "sshfs":
		if _, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
			t.Skipf("no file system in user space: %v", err)
		}
	case "ssh2 of npm":
		if _, err := os.Stat("testdata/node/node_modules"); err != nil {
			t.Skip("its packages are missing; make test-go installs them")
		}
	case "paramiko", "asyncssh":
		if exec.Command("/usr/bin/python3", "-W", "ignore", "-c", "import "+name).Run() != nil {
			t.Skipf("python3-%s is not installed", name)
		}
	}
}

func TestClients(t *testing.T) {
	h := listen(t)
	t.Setenv("HOME", t.TempDir()) // dropbear and PuTTY write files there
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			need(t, c.program)
			skipped(t, name)
			src, content := random(t, 3_000_000)
			dir := t.TempDir()
			do := func(stdin string, argv []string, cmd string) result {
				all := make([]string, len(argv))
				for i, arg := range argv {
					all[i] = strings.NewReplacer("HOST", "127.0.0.1", "PORT", h.port, "KNOWN", h.known,
						"FINGERPRINT", h.fingerprint, "DIR", dir, "SRC", src, "CMD", cmd).Replace(arg)
				}
				return run(t, stdin, all...)
			}
			if c.exec != nil {
				if r := do("input\n", c.exec, "cat; echo error >&2; exit 7"); r.Out != "input\n" || !strings.Contains(r.Err, "error\n") || r.Code != 7 {
					t.Errorf("command: %+v", r)
				}
				if r := do("echo script; exit 5\n", c.exec, "sh"); r.Out != "script\n" || r.Code != 5 {
					t.Errorf("script: %+v", r)
				}
			}
			if c.pty != nil {
				if r := do("", c.pty, "test -t 0 && test -t 1 && echo terminal $((6*7))"); !strings.Contains(r.Out, "terminal 42\r") || r.Code != 0 {
					t.Errorf("terminal: %+v", r)
				}
			}
			if c.put != nil {
				if r := do("", c.put, ""); r.Code != 0 {
					t.Errorf("put: %+v", r)
				}
				same(t, filepath.Join(dir, "put"), content)
				if r := do("", c.get, ""); r.Code != 0 {
					t.Errorf("get: %+v", r)
				}
				same(t, filepath.Join(dir, "got"), content)
			}
		})
	}
}

func TestGit(t *testing.T) {
	need(t, "git")
	dir := t.TempDir()
	git := func(args ...string) string {
		return must(t, "", append([]string{"git", "-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	}
	git("init", "-q", "-b", "main", "a")
	for i := range 20 {
		_, content := random(t, 10_000)
		if err := os.WriteFile(fmt.Sprintf("%s/a/f%d", dir, i), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("-C", "a", "add", ".")
	git("-C", "a", "commit", "-q", "-m", "first")
	t.Setenv("GIT_SSH_COMMAND", "ssh -F "+ours(t))
	git("clone", "-q", "host:"+dir+"/a", "b")
	git("-C", "b", "commit", "-q", "--allow-empty", "-m", "second")
	git("-C", "b", "push", "-q", "origin", "HEAD:other")
	if got := git("-C", "a", "log", "--format=%s", "other"); got != "second\nfirst\n" {
		t.Errorf("pushed %q", got)
	}
}

// After a change of the window size, the programs of the terminal get a signal and the new size.
func TestResize(t *testing.T) {
	s, err := listen(t).dial(t).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := s.RequestPty("vt100", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`stty -echo; trap 'stty size' WINCH; stty size; while read x; do :; done; echo end`); err != nil {
		t.Fatal(err)
	}
	expect := reader(t, out)
	expect(`24 80\r\n`)
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	// The shell runs the trap after a read, so it needs a line after the signal has arrived.
	done := make(chan struct{})
	var lines sync.WaitGroup
	lines.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				fmt.Fprintln(in, "")
			}
		}
	})
	expect(`50 132\r\n`)
	close(done)
	lines.Wait()
	fmt.Fprint(in, "\x04")
	expect(`end\r\n`)
}

// reader returns a function that reads until the output matches a pattern.
func reader(t *testing.T, out interface{ Read([]byte) (int, error) }) func(pattern string) string {
	t.Helper()
	var seen string
	return func(pattern string) string {
		t.Helper()
		re := regexp.MustCompile(pattern)
		buf := make([]byte, 4096)
		for {
			if at := re.FindStringIndex(seen); at != nil {
				found := seen[at[0]:at[1]]
				seen = seen[at[1]:]
				return found
			}
			n, err := out.Read(buf)
			seen += string(buf[:n])
			if err != nil && n == 0 {
				t.Fatalf("no %s in %q: %v", pattern, seen, err)
			}
		}
	}
}
