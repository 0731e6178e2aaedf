package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// A user works in a session: with commands, a terminal, a port and its log.
func TestInteractiveSession(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	berth.Must("session", "create", "minimal:1", "--name", "my-desk", "--cpu", "0.3", "--mem", "64m", "-w")
	s, err := u.Sessions(t.Context(), client.SessionFilter{Name: "my-desk"})
	if err != nil || len(s) != 1 || s[0].Status != "RUNNING" || s[0].Type != "INTERACTIVE" {
		t.Fatalf("session: %+v, %v", s, err)
	}
	id := s[0].ID

	t.Run("exec", func(t *testing.T) {
		berth := u.In(t).Shell()
		if r := berth.Run("session", "exec", "my-desk", "--", "sh", "-c", "echo out; echo err >&2; exit 9"); r.Code != 9 || r.Stdout != "out\n" || r.Stderr != "err\n" {
			t.Errorf("%+v", r)
		}
		if r := berth.RunWith("abc", "session", "exec", "-i", "my-desk", "--", "wc", "-c"); r.Code != 0 || strings.TrimSpace(r.Stdout) != "3" {
			t.Errorf("with input: %+v", r)
		}
		if r := berth.Run("session", "exec", "my-desk", "--", "no-such-program"); r.Code == 0 {
			t.Errorf("a program that is not there: %+v", r)
		}
		if r := berth.Run("session", "exec", "no-desk", "--", "true"); r.Code != 3 && r.Code != 125 {
			t.Errorf("a session that is not there: %+v", r)
		}
	})
	t.Run("terminal", func(t *testing.T) { terminal(t, u.In(t), id) })
	t.Run("port", func(t *testing.T) { port(t, u.In(t), id) })
	u.End(id)
	if _, err := u.OpenTerminal(t.Context(), client.TerminalOptions{Session: id}); err == nil {
		t.Error("a terminal opens in a session that has ended")
	}
}

// terminal implements the protocol of docs/http.md.
func terminal(t *testing.T, u *cluster.User, session string) {
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Timeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, u.Base()+"/sessions/"+session+"/terminal?cols=101&rows=37", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + u.Token}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	var screen bytes.Buffer
	type frame struct {
		Type string `json:"type"`
		Code *int   `json:"code"`
	}
	read := func() (f frame) {
		kind, b, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("%v, after %q", err, screen.String())
		}
		if kind == websocket.MessageBinary {
			if len(b) == 0 || b[0] != 1 {
				t.Errorf("frame %q does not begin with the stream's number", b)
			}
			screen.Write(b[1:])
			return f
		}
		if err := jsonFrame(b, &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	until := func(text string) {
		for !strings.Contains(screen.String(), text) {
			if f := read(); f.Type == "exit" || f.Type == "error" {
				t.Fatalf("ended with %+v before %q: %q", f, text, screen.String())
			}
		}
	}
	send := func(text string) {
		if err := conn.Write(ctx, websocket.MessageBinary, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if f := read(); f.Type != "started" {
		t.Errorf("first frame %+v, want started", f)
	}
	send("stty size; tty\n")
	until("37 101\r\n")
	until("/dev/pts/")
	if err := wsjson.Write(ctx, conn, map[string]any{"type": "resize", "cols": 55, "rows": 22}); err != nil {
		t.Fatal(err)
	}
	send("stty size\n")
	until("22 55\r\n")
	send("sh -c 'echo g''o; exec sleep 1000'\n")
	until("go\r\n") // the command in the foreground prints this, so it has started
	send("\x03")    // Ctrl-C ends the command
	send("echo co''nt; exit 3\n")
	until("cont\r\n")
	for {
		f := read()
		if f.Type == "exit" {
			if f.Code == nil || *f.Code != 3 {
				t.Errorf("exit frame %+v, want 3", f)
			}
			break
		}
	}
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("after the exit frame: %v, want a normal close", err)
	}
}

// port reaches a server on the container's loopback, and nothing else.
func port(t *testing.T, u *cluster.User, session string) {
	if out, code := u.Exec(session, "mkdir -p /tmp/www && echo served > /tmp/www/index.html && httpd -p 127.0.0.1:8888 -h /tmp/www"); code != 0 {
		t.Fatalf("httpd: %s", out)
	}
	cmd := u.Shell().Command("session", "forward", "my-desk", "0:8888")
	notes, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line := readLine(t, notes)
	at := strings.Index(line, "127.0.0.1:")
	if at < 0 {
		t.Fatalf("forward prints %q", line)
	}
	address := strings.Fields(line[at:])[0]
	for i := range 3 {
		resp, err := http.Get(fmt.Sprintf("http://%s/?%d", strings.TrimRight(address, ",."), i))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "served\n" {
			t.Errorf("%s: %q", resp.Status, body)
		}
	}
	if conn, err := u.DialPort(t.Context(), session, 8889); err == nil {
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes from a port without a listener", n)
		}
		conn.Close()
	}
}

// berth session logs -f prints the existing output and new output, and ends with the command.
func TestLogsFollow(t *testing.T) {
	u := platform.User(t)
	s := u.Run(cluster.Batch("echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; exit 4"))
	u.Until(s.ID, "RUNNING")
	berth := u.Shell()
	cmd := berth.Command("session", "logs", "-f", s.Name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, out); line != "one" {
		t.Errorf("%q, want one", line)
	}
	u.Exec(s.ID, "touch /tmp/go")
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "two\n" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("logs -f: %v", err)
	}
	end := u.Until(s.ID, "TERMINATED")
	if end.ExitCode == nil || *end.ExitCode != 4 || end.Result != "FAILURE" || end.TerminationReason == nil || *end.TerminationReason != "FAILED" {
		t.Errorf("ended as %+v", end)
	}
	if out := berth.Must("session", "logs", s.Name); out != "one\ntwo\n" {
		t.Errorf("kept log %q", out)
	}
	if out := berth.Must("session", "logs", "-n", "1", s.Name); out != "two\n" {
		t.Errorf("its last line %q", out)
	}
}
