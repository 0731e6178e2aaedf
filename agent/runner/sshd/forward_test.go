package sshd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/testenv/wait"
)

// echo starts a server that returns its input in capitals, and closes a connection after its client
// has.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				all, _ := io.ReadAll(c)
				_, _ = io.WriteString(c, strings.ToUpper(string(all)))
			}()
		}
	}()
	return l.Addr().String()
}

// asks sends a text to an echo server and returns the answer. It ends the text with a half close.
func asks(network, address, text string) (string, error) {
	c, err := net.Dial(network, address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return "", err
	}
	all, err := io.ReadAll(c)
	return string(all), err
}

// background starts a client that runs until the end of the test.
func background(t *testing.T, argv ...string) (stdout, stderr *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return bufio.NewReader(out), bufio.NewReader(errs)
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Every kind of forward of OpenSSH's client transfers data in both directions, and each direction
// can end separately.
func TestForwards(t *testing.T) {
	need(t, "ssh")
	there := echo(t, "tcp", "127.0.0.1:0")
	dir := t.TempDir()
	socket := filepath.Join(dir, "there")
	echo(t, "unix", socket)
	local, dynamic, fixed := freePort(t), freePort(t), freePort(t)
	_, errs := background(t, "ssh", "-F", ours(t), "-o", "LogLevel=INFO", "-o", "ExitOnForwardFailure=yes", "-N",
		"-L", local+":"+there, "-L", dir+"/local:"+socket, "-L", dir+"/mixed:"+there, "-D", dynamic,
		"-R", fixed+":"+there, "-R", "0:"+there, "-R", dir+"/remote:"+socket, "host")
	var port string
	for port == "" {
		line, err := errs.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`Allocated port (\d+)`).FindStringSubmatch(line); m != nil {
			port = m[1]
		}
	}
	for name, at := range map[string][2]string{
		"-L": {"tcp", local}, "-R": {"tcp", fixed}, "-R 0": {"tcp", "127.0.0.1:" + port},
		"-L of sockets": {"unix", dir + "/local"}, "-L of a socket to a port": {"unix", dir + "/mixed"}, "-R of sockets": {"unix", dir + "/remote"},
	} {
		var got string
		var err error
		wait.Until(t, name+" answers", func() bool { got, err = asks(at[0], at[1], "text of "+name); return err == nil })
		if got != strings.ToUpper("text of "+name) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if st, err := os.Stat(dir + "/remote"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket of -R: %v, %v", st.Mode(), err)
	}
	c, err := net.Dial("tcp", dynamic)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, number, _ := net.SplitHostPort(there)
	var p int
	_, _ = fmt.Sscan(number, &p)
	_, _ = c.Write([]byte{5, 1, 0})
	_, _ = io.ReadFull(c, make([]byte, 2))
	_, _ = c.Write([]byte{5, 1, 0, 1, 127, 0, 0, 1, byte(p >> 8), byte(p)})
	answer := make([]byte, 10)
	if _, err := io.ReadFull(c, answer); err != nil || answer[1] != 0 {
		t.Fatalf("-D: %v %v", answer, err)
	}
	_, _ = io.WriteString(c, "socks")
	_ = c.(*net.TCPConn).CloseWrite()
	if all, err := io.ReadAll(c); string(all) != "SOCKS" {
		t.Errorf("-D: %q, %v", all, err)
	}
}

// Listeners of -R are reachable on loopback only, whatever address the client requests, and are
// closed by a cancel or with the connection.
func TestListenersAreLoopback(t *testing.T) {
	h := listen(t)
	c := h.dial(t)
	listen := func(host string, port uint32) (uint32, bool) {
		ok, answer, err := c.SendRequest("tcpip-forward", true, ssh.Marshal(struct {
			Host string
			Port uint32
		}{host, port}))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Port uint32 }
		if ok && port == 0 && ssh.Unmarshal(answer, &got) != nil {
			t.Errorf("port 0 is answered by %x", answer)
		}
		return got.Port, ok
	}
	outside := ""
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			outside = n.IP.String()
		}
	}
	for _, host := range []string{"", "*", "0.0.0.0", "localhost", "127.0.0.1"} {
		port, ok := listen(host, 0)
		if !ok || port == 0 {
			t.Fatalf("%q: %v %d", host, ok, port)
		}
		inside, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Errorf("%q: %v", host, err)
		} else {
			inside.Close()
		}
		if outside != "" {
			if c, err := net.Dial("tcp", net.JoinHostPort(outside, fmt.Sprint(port))); err == nil {
				c.Close()
				t.Errorf("%q is reachable at %s", host, outside)
			}
		}
		if _, ok := listen(host, port); ok {
			t.Errorf("%q: port %d is forwarded twice", host, port)
		}
		cancel := ssh.Marshal(struct {
			Host string
			Port uint32
		}{host, port})
		if ok, _, _ := c.SendRequest("cancel-tcpip-forward", true, cancel); !ok {
			t.Errorf("%q: not cancelled", host)
		}
		if ok, _, _ := c.SendRequest("cancel-tcpip-forward", true, cancel); ok {
			t.Errorf("%q: cancelled twice", host)
		}
		if _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			t.Errorf("%q: open after the cancel", host)
		}
	}
	if _, ok := listen("localhost", 70000); ok {
		t.Error("port 70000 is accepted")
	}
	port, _ := listen("", 0)
	c.Close()
	wait.Until(t, "the port is closed with the connection", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// A destination that cannot be reached is refused with the reason.
func TestRefusedDestinations(t *testing.T) {
	c := listen(t).dial(t)
	for name, address := range map[string]string{"refused": freePort(t), "no such host": "no-such-host.invalid:1"} {
		_, err := c.Dial("tcp", address)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", address, err)
		}
	}
	_, _, err := c.OpenChannel("direct-tcpip", ssh.Marshal(struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}{"127.0.0.1", 65536 + 22, "", 0}))
	if err == nil || !strings.Contains(err.Error(), "65558 is not between") {
		t.Errorf("port 65558: %v", err)
	}
	if _, err := c.Dial("unix", "/no/such/socket"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("socket: %v", err)
	}
}

// The client's agent is reachable in the container through a socket that only the user can access
// and that is removed with the connection.
func TestAgent(t *testing.T) {
	need(t, "ssh-agent")
	dir := t.TempDir()
	socket := filepath.Join(dir, "agent")
	background(t, "ssh-agent", "-D", "-a", socket)
	wait.Until(t, "the agent listens", func() bool { _, err := os.Stat(socket); return err == nil })
	t.Setenv("SSH_AUTH_SOCK", socket)
	must(t, "", "ssh-add", "-q", keyFile(t))
	want := must(t, "", "ssh-add", "-L")
	out := must(t, "", "ssh", "-A", "-F", ours(t), "host", `ssh-add -L; echo $SSH_AUTH_SOCK; stat -c %a $SSH_AUTH_SOCK $(dirname $SSH_AUTH_SOCK)`)
	rest, ok := strings.CutPrefix(out, want)
	lines := strings.Split(rest, "\n")
	if !ok || len(lines) != 4 || lines[1] != "600" || lines[2] != "700" {
		t.Fatalf("inside: %q, want the key %q and a private socket", out, want)
	}
	wait.Until(t, "the directory is removed", func() bool { _, err := os.Stat(filepath.Dir(lines[0])); return os.IsNotExist(err) })
	if out := must(t, "", "ssh", "-a", "-F", ours(t), "host", `echo "<$SSH_AUTH_SOCK>"`); out == "<"+socket+">\n" {
		// A shell below the test inherits the variable; the runner in a container does not.
		t.Log("the agent's variable is inherited from the test")
	}
}

// Two forwarded displays have different numbers, each with the cookie of its client.
func TestX11(t *testing.T) {
	need(t, "xauth")
	c := listen(t).dial(t)
	cookies := []string{"00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"}
	displays := c.HandleChannelOpen("x11")
	seen := map[string]bool{}
	for _, cookie := range cookies {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ok, err := s.SendRequest("x11-req", true, ssh.Marshal(struct {
			Single           bool
			Protocol, Cookie string
			Screen           uint32
		}{false, "MIT-MAGIC-COOKIE-1", cookie, 0}))
		if !ok || err != nil {
			t.Fatalf("x11-req: %v %v", ok, err)
		}
		in, _ := s.StdinPipe()
		out, _ := s.StdoutPipe()
		if err := s.Start("echo $DISPLAY $XAUTHORITY; stat -c %a $XAUTHORITY; xauth list $DISPLAY; cat"); err != nil {
			t.Fatal(err)
		}
		expect := reader(t, out)
		line := expect(`localhost:\d+\.0 \S+\n600\n[^\n]*\n`)
		var number int
		_, _ = fmt.Sscanf(line, "localhost:%d", &number)
		if !strings.Contains(line, "MIT-MAGIC-COOKIE-1  "+cookie) || seen[line] || number < 10 {
			t.Errorf("inside: %q", line)
		}
		seen[line] = true
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", 6000+number))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "X")
		ch, requests, err := (<-displays).Accept()
		if err != nil {
			t.Fatal(err)
		}
		go ssh.DiscardRequests(requests)
		one := make([]byte, 1)
		if _, err := io.ReadFull(ch, one); err != nil || one[0] != 'X' {
			t.Errorf("display: %q %v", one, err)
		}
		conn.Close()
		ch.Close()
		defer in.Close()
	}
	if len(seen) != 2 {
		t.Errorf("%d displays", len(seen))
	}
}

// A program started with ssh -X reaches the X server of the client.
func TestX11OfOpenSSH(t *testing.T) {
	need(t, "xauth")
	if err := os.MkdirAll("/tmp/.X11-unix", 0o1777); err != nil {
		t.Skip(err)
	}
	number := 700 + os.Getpid()%200
	echo(t, "unix", fmt.Sprintf("/tmp/.X11-unix/X%d", number))
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XAUTHORITY", filepath.Join(home, "x"))
	t.Setenv("DISPLAY", fmt.Sprintf(":%d", number))
	must(t, "", "xauth", "-q", "add", fmt.Sprintf(":%d", number), ".", strings.Repeat("ab", 16))
	// The client replaces the cookie in the first message, so it rejects an invalid cookie itself.
	out := must(t, "", "ssh", "-Y", "-F", ours(t), "host", "xauth list $DISPLAY | wc -l; echo $DISPLAY")
	if !regexp.MustCompile(`^1\nlocalhost:\d+\.0\n$`).MatchString(out) {
		t.Errorf("inside: %q", out)
	}
}
