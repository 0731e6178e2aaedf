package sshd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/agent/runner/sshd"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// script resembles what VS Code's Remote-SSH sends to the shell of its first connection: it prints
// marker lines around results that the editor parses, leaves a server in the background, and ends.
const script = `unset PS1
echo "a1b2c3: running"
uname -s -m
DIR=%[1]s/.vscode-server
mkdir -p "$DIR" && cd "$DIR" || { echo "a1b2c3: error"; exit 31; }
for tool in tar realpath; do command -v $tool >/dev/null && echo "has $tool"; done
echo 'listening' > log
(exec -a vscode-server sleep 20) >/dev/null 2>&1 </dev/null &
PID=$!
kill -0 $PID && echo "server runs"
kill $PID
cat log
printf 'a1b2c3: start\nexitCode==0==\nlisteningOn==%%s==\na1b2c3: end\n' "$DIR/socket"
`

// VS Code's connection gives the same results as with OpenSSH's server: a shell on a pipe with the
// script as its input, a dynamic forward at the same time, and several connections at once.
func TestVSCode(t *testing.T) {
	need(t, "ssh")
	answer := func(config string) []result {
		all := make([]result, 4)
		var tasks sync.WaitGroup
		for i := range all {
			home := t.TempDir()
			proxy := freePort(t)
			tasks.Go(func() {
				r := run(t, fmt.Sprintf(script, home), "ssh", "-F", config, "-T", "-D", proxy, "host", "bash")
				r.Out = strings.ReplaceAll(r.Out, home, "HOME")
				all[i] = r
			})
		}
		tasks.Wait()
		return all
	}
	got := answer(ours(t))
	if !strings.Contains(got[0].Out, "a1b2c3: end\n") || !strings.Contains(got[0].Out, "server runs\nlistening\n") {
		t.Errorf("the script printed %q", got[0].Out)
	}
	if diff := cmp.Diff(answer(real(t)), got); diff != "" {
		t.Errorf("OpenSSH's server -, ours +\n%s", diff)
	}
}

// VS Code connects to the socket of its server, and to random ports of it.
func TestVSCodeSocket(t *testing.T) { bothWays(t, vsCodeSocket) }

func vsCodeSocket(t *testing.T, c *ssh.Client) {
	socket := filepath.Join(t.TempDir(), "s")
	echo(t, "unix", socket)
	var tasks sync.WaitGroup
	for i := range 20 {
		tasks.Go(func() {
			conn, err := c.Dial("unix", socket)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "request %d", i)
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			if all, err := io.ReadAll(conn); string(all) != fmt.Sprintf("REQUEST %d", i) {
				t.Errorf("%q, %v", all, err)
			}
		})
	}
	tasks.Wait()
}

// JetBrains opens several commands on one connection, uploads its worker over SFTP, lets the worker
// connect back through a port that the server chooses, and forwards to the worker's port.
func TestJetBrains(t *testing.T) { bothWays(t, jetBrains) }

func jetBrains(t *testing.T, c *ssh.Client) {
	var tasks sync.WaitGroup
	for i := range 8 {
		tasks.Go(func() {
			s, err := c.NewSession()
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			out, err := s.Output(fmt.Sprintf("echo $((%d*7)); exit %d", i, i))
			var exit *ssh.ExitError
			if errors.As(err, &exit) != (i > 0) || i > 0 && exit.ExitStatus() != i || string(out) != fmt.Sprintf("%d\n", i*7) {
				t.Errorf("command %d: %q, %v", i, out, err)
			}
		})
	}
	tasks.Wait()
	files, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(t.TempDir(), ".cache/JetBrains/RemoteDev/dist")
	if err := files.MkdirAll(cache); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 40<<16) // 40 MiB
	to, err := files.Create(cache + "/worker.tmp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.ReadFrom(bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Close(), files.PosixRename(cache+"/worker.tmp", cache+"/worker"), files.Chmod(cache+"/worker", 0o755), files.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := s.Output("sha256sum < " + cache + "/worker"); err != nil || !strings.HasPrefix(string(sum), fmt.Sprintf("%x", sha256.Sum256(content))) {
		t.Errorf("the upload has the sum %q, %v", sum, err)
	}
	back, err := c.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := back.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "from the editor")
			conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", back.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if all, err := io.ReadAll(conn); string(all) != "from the editor" {
		t.Errorf("the worker reads %q, %v", all, err)
	}
}

// The error for an exceeded limit contains the limit.
func TestLimits(t *testing.T) {
	c := listen(t).dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 100<<10)
	for i := range 2 {
		if err := s.Setenv(fmt.Sprint("V", i), big); err != nil {
			t.Errorf("variable %d: %v", i, err)
		}
	}
	if s.Setenv("V2", big) == nil {
		t.Error("300 KiB of variables are accepted")
	}
	s.Close()
	var last error
	var open []*ssh.Session
	for range 300 {
		s, err := c.NewSession()
		if last = err; err != nil {
			break
		}
		open = append(open, s)
	}
	var refused *ssh.OpenChannelError
	if !errors.As(last, &refused) || refused.Reason != ssh.ResourceShortage || !strings.Contains(refused.Message, "200 sessions") {
		t.Errorf("after %d sessions: %v", len(open), last)
	}
	var forwards []net.Listener
	for last = nil; last == nil && len(forwards) < 300; {
		var l net.Listener
		if l, last = c.Listen("tcp", "127.0.0.1:0"); last == nil {
			forwards = append(forwards, l)
		}
	}
	if len(forwards) != 200 {
		t.Errorf("%d forwards: %v", len(forwards), last)
	}
}

// Variables that the client sends reach only the command of the session. A client cannot send
// variables that the server sets.
func TestVariablesOfTheCommandAlone(t *testing.T) {
	c := listen(t).dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"LD_PRELOAD": true, "PATH": true, "ANY": true, "SSH_AUTH_SOCK": false, "SSH_CONNECTION": false, "DISPLAY": false, "XAUTHORITY": false,
		"HOME": false, "": false, "A=B": false, "NUL\x00": false,
	} {
		value := "/none"
		if name == "PATH" {
			value = os.Getenv("PATH") + ":/none"
		}
		if err := s.Setenv(name, value); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	if out, err := s.Output("echo $ANY; env -u LD_PRELOAD true; echo ${PATH##*:}"); err != nil || string(out) != "/none\n/none\n" {
		t.Errorf("%q %v", out, err)
	}
	if v := os.Getenv("ANY") + os.Getenv("LD_PRELOAD"); v != "" {
		t.Errorf("the server's own environment has %q", v)
	}
	if s, err = c.NewSession(); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Output("echo $ANY"); err != nil || string(out) != "\n" {
		t.Errorf("the next session has %q, %v", out, err)
	}
}

// When a connection ends, the command of a terminal gets SIGHUP; a detached command continues.
func TestEndOfAConnection(t *testing.T) {
	there, here := net.Pipe()
	here.Close()
	if err := sshd.Serve(context.Background(), there, sshd.Config{}); err == nil {
		t.Error("a client that sends nothing is served")
	}
	c := listen(t).dial(t)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "mark")
	if err := s.RequestPty("vt100", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	out, _ := s.StdoutPipe()
	if err := s.Start("trap 'echo hung up >" + mark + "; exit' HUP; echo ready; while :; do sleep 0.1; done"); err != nil {
		t.Fatal(err)
	}
	reader(t, out)("ready")
	c.Close()
	wait.Until(t, "the command gets the signal", func() bool { text, _ := os.ReadFile(mark); return string(text) == "hung up\n" })
}
