package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/app"
)

// Without TLS, a page of a sibling host can add cookies with the name of ours. Invalid ones do not
// hide the user's own cookie. If a valid cookie of another user is present, no app is opened,
// because the user would work in the session of an attacker.
func TestTossedCookies(t *testing.T) {
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := testGateway()
	g.Keys = keys
	target := app.Target{Session: id.New(id.Session), App: "jupyter"}
	of := func(user uuid.UUID) string {
		v, err := g.seal(claims{Target: target, Credential: uuid.New(), User: user, Expires: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	me := uuid.New()
	mine, theirs := of(me), of(uuid.New())
	at := location{mode: g.modes[0], target: target, prefix: "/", path: "/"}
	for _, c := range []struct {
		name    string
		cookies []string
		code    string
	}{
		{"one", []string{mine}, ""},
		{"after many invalid cookies", append(strings.Split(strings.Repeat("x ", 100), " "), mine), ""},
		{"two cookies of one user", []string{mine, of(me)}, ""},
		{"with a cookie of another user", []string{mine, theirs}, problem.CodePermissionDenied},
		{"a cookie of another user first", []string{theirs, mine}, problem.CodePermissionDenied},
		{"none", nil, problem.CodeUnauthenticated},
	} {
		r := httptest.NewRequest("GET", "http://x/", nil)
		for _, v := range c.cookies {
			r.AddCookie(&http.Cookie{Name: cookiePlain, Value: v})
		}
		value, _, err := g.cookieOf(r, at)
		p, _ := problem.From(err)
		switch {
		case c.code == "" && (err != nil || value != mine):
			t.Errorf("%s: %q, %v", c.name, value, err)
		case c.code != "" && (err == nil || p.Code != c.code):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// raw starts an app that answers every connection with the same bytes.
func raw(t *testing.T, answer string) *world {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return newWorldAt(t, l.Addr().(*net.TCPAddr).Port)
}

// Headers of an answer that comes before the final one are filtered too.
func TestInformationalAnswers(t *testing.T) {
	w := raw(t, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nSet-Cookie: a=1; Domain=apps.test\r\nClear-Site-Data: \"*\"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", w.host)
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(all); !strings.Contains(s, "rel=preload") || !strings.HasSuffix(s, "ok") || strings.Contains(s, "Domain=") || strings.Contains(s, "Clear-Site-Data") {
		t.Errorf("the client gets %q", s)
	}
}

// A client cannot switch to HTTP/2 behind the gateway, where requests would not be filtered.
func TestUpgradeToHTTP2IsNotForwarded(t *testing.T) {
	got := make(chan http.Header, 1)
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	resp := w.request(t, http.MethodGet, "/", nil, http.Header{"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {"h2c"}, "Http2-Settings": {"AAMAAABkAARAAAAAAAIAAAAA"}})
	h := <-got
	if resp.StatusCode != http.StatusOK || h.Get("Upgrade") != "" || h.Get("Http2-Settings") != "" || h.Get("Connection") != "" {
		t.Errorf("%s; the app gets %v", resp.Status, h)
	}
}

// requestTwo sends one HTTP/2 request with fields and a body that a client library would refuse to send.
func requestTwo(t *testing.T, w *world, fields [][2]string, body string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(c, http2.ClientPreface)
	f := http2.NewFramer(c, c)
	_ = f.WriteSettings()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, kv := range fields {
		_ = e.WriteField(hpack.HeaderField{Name: kv[0], Value: kv[1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: body == ""})
	if body != "" {
		_ = f.WriteData(1, true, []byte(body))
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return // the server closed the connection
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return
		case *http2.HeadersFrame, *http2.DataFrame:
			if frame.Header().Flags.Has(http2.FlagDataEndStream) {
				return
			}
		}
	}
}

// An HTTP/2 request whose fields would form two requests, or a different one, in HTTP/1.1 is never
// forwarded as such.
func TestDowngradedRequests(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{} // by case: a request can reach the app after its answer
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("X-Case")]++
		mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(r.URL.Path, "smuggled") || r.Header.Get("X-Smuggled") != "" || strings.Contains(r.Host, "other") {
			t.Errorf("the app got %s %s of %s with %v", r.Method, r.URL, r.Host, r.Header)
		}
		if len(r.TransferEncoding) > 0 && r.ContentLength >= 0 {
			t.Errorf("two lengths of %q", body)
		}
	}))
	base := [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", w.host}}
	with := func(more ...[2]string) [][2]string { return append(append([][2]string{}, base...), more...) }
	inside := "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, c := range []struct {
		name   string
		fields [][2]string
		body   string
	}{
		{"an encoding", with([2]string{"transfer-encoding", "chunked"}), inside},
		{"a length that is too small", with([2]string{"content-length", "0"}), inside},
		{"two lengths", with([2]string{"content-length", "3"}, [2]string{"content-length", "0"}), "abc"},
		{"a line break in a value", with([2]string{"x-a", "b\r\nX-Smuggled: 1"}), ""},
		{"a line break in a name", with([2]string{"x-a\r\nX-Smuggled", "1"}), ""},
		{"a line break in the path", [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", "/ HTTP/1.1\r\nX-Smuggled: 1\r\n"}, {":authority", w.host}}, ""},
		{"a line break in the method", [][2]string{{":method", "GET / HTTP/1.1\r\nX-Smuggled: 1\r\n"}, {":scheme", "http"}, {":path", "/"}, {":authority", w.host}}, ""},
		{"two hosts", with([2]string{"host", "other.apps.test"}), ""},
		{"a connection header", with([2]string{"connection", "upgrade"}, [2]string{"upgrade", "h2c"}), ""},
	} {
		requestTwo(t, w, append(c.fields, [2]string{"x-case", c.name}), c.body)
	}
	mu.Lock()
	defer mu.Unlock()
	for name, n := range seen {
		if n > 1 || name == "" {
			t.Errorf("%q: the app got %d requests", name, n)
		}
	}
}

// An app that runs but never listens, and an app that has ended, fail with the reason and their
// output.
func TestAppsThatDoNotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close() // the port has no listener
	up := &upstream{Container: &app.Container{Kernel: uuid.New(), RPC: reachRunner(t), Ports: node{t.Context()}}, port: port}
	g := testGateway()
	if g.Apps, err = app.New(app.Config{}); err != nil {
		t.Fatal(err)
	}
	for name, reason := range map[string]string{"slow": "did not listen on port", "dead": "does not listen on port"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		err := g.listening(ctx, up, app.Definition{App: appstate.App{Name: name, Port: port, Command: []string{"serve"}}})
		cancel()
		f, ok := err.(*failure)
		if !ok || !strings.Contains(f.Reason, reason) || !strings.Contains(f.Log, "last words of "+name) || name == "dead" && !strings.Contains(f.Reason, "exit code 7") {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// runner answers for two apps: "slow" runs, and "dead" has ended.
type runner struct {
	agentpb.UnimplementedAgentServer
}

func reachRunner(t *testing.T) agentpb.AgentClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	agentpb.RegisterAgentServer(srv, runner{})
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return agentpb.NewAgentClient(conn)
}

// Exec implements agentpb.AgentServer.
func (runner) Exec(s agentpb.Agent_ExecServer) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	command := first.GetStart().GetCommand()
	out := ""
	switch {
	case len(command) > 3 && command[2] == "status":
		out = fmt.Sprintf(`{"name":%q,"running":%v,"reason":"it ended with exit code 7"}`, command[3], command[3] == "slow")
	case len(command) > 3 && command[2] == "log":
		out = "last words of " + command[3]
	}
	if err := s.Send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Stdout{Stdout: []byte(out)}}); err != nil {
		return err
	}
	return s.Send(&agentpb.ExecOutput{Output: &agentpb.ExecOutput_Exit{}})
}
