package stories

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// visit sends a request to an app at a gateway.
func visit(t *testing.T, g *cluster.Gateway, host, path, cookie string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

// page returns the body of an app's answer; "" while it cannot be reached.
func page(t *testing.T, g *cluster.Gateway, host, path, cookie string) string {
	t.Helper()
	resp, err := visit(t, g, host, path, cookie)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// shell opens an SSH connection with a command that does not end, and returns after the first line
// of output.
func shell(t *testing.T, g *cluster.Gateway, key, session string) (wait func() (said string, err error)) {
	t.Helper()
	host, port, _ := strings.Cut(g.SSH, ":")
	cmd := exec.CommandContext(t.Context(), "ssh", "-i", key, "-p", port, "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=accept-new", "-o", "HostKeyAlias=berth",
		"-o", "UserKnownHostsFile="+filepath.Join(filepath.Dir(key), "known"), session+"@"+host, "echo ready; exec sleep 86400")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		_ = cmd.Wait()
		t.Fatalf("%q, %v: %s", line, err, errs.String())
	}
	return func() (string, error) { err := cmd.Wait(); return errs.String(), err }
}

// When a gateway is killed, only its connections are lost: the browser continues at another gateway
// with its cookie, and an SSH client reconnects to the same host key. A gateway that is stopped
// notifies SSH clients. When the machine's agent restarts, streams end and the app continues.
func TestGatewaysAndAgentsThatEnd(t *testing.T) {
	first := platform.Gateway(t, "gateway-1", nil)
	second, third := platform.Gateway(t, "gateway-2", first), platform.Gateway(t, "gateway-3", first)
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Skipf("ssh-keygen: %v %s", err, out)
	}
	if _, err := os.Stat(key + ".pub"); err != nil {
		t.Fatal(err)
	}
	u.Shell().Must("ssh-key", "upload", "laptop", key+".pub")
	var made struct {
		CreateSession struct{ Session struct{ ID, Name string } }
	}
	u.Query(`mutation($in: CreateSessionInput!) { createSession(input: $in) { session { id name } } }`, map[string]any{"in": map[string]any{
		"image": "minimal:1", "slots": cluster.Small(), "apps": []map[string]any{{"name": "docs", "port": 8000, "command": []string{"sh", "-c",
			`mkdir -p /tmp/w/cgi-bin; cat /proc/sys/kernel/random/uuid > /tmp/w/index.html; printf '#!/bin/sh\necho; while echo more; do sleep 0.2; done' > /tmp/w/cgi-bin/stream; chmod +x /tmp/w/cgi-bin/stream; exec httpd -f -p 127.0.0.1:{port} -h /tmp/w`}}},
	}}, &made)
	session := made.CreateSession.Session
	u.Until(session.ID, "RUNNING")
	var opened struct{ OpenApp struct{ URL, Address string } }
	cluster.Eventually(t, "the manager lists the gateways", func() bool {
		resp, err := u.Raw(t.Context(), client.Request{Query: `mutation($in: OpenAppInput!) { openApp(input: $in) { url address } }`, Variables: map[string]any{"in": map[string]any{"session": session.ID, "app": "docs"}}})
		return err == nil && resp.Err() == nil && json.Unmarshal(resp.Data, &opened) == nil
	})
	host := strings.TrimSuffix(strings.TrimPrefix(opened.OpenApp.Address, "http://"), "/")
	_, ticket, _ := strings.Cut(opened.OpenApp.URL, host)
	resp, err := visit(t, first, host, ticket, "")
	if err != nil || len(resp.Cookies()) != 1 {
		t.Fatalf("enter: %v, %+v", err, resp)
	}
	cookie := resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	started := ""
	for _, g := range []*cluster.Gateway{first, second, third} {
		cluster.Eventually(t, "the app answers at "+g.Name(), func() bool { return page(t, g, host, "/", cookie) != "" })
		if now := page(t, g, host, "/", cookie); started != "" && now != started {
			t.Errorf("another start of the app at %s", g.Name())
		} else {
			started = now
		}
	}
	stream := func(g *cluster.Gateway) io.Reader {
		resp, err := visit(t, g, host, "/cgi-bin/stream", cookie)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("stream at %s: %v, %+v", g.Name(), err, resp)
		}
		return resp.Body
	}

	lost, kept := stream(first), stream(second)
	broken := shell(t, first, key, session.Name)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lost); err == nil {
		t.Error("a stream through a gateway that was killed ends like a complete answer")
	}
	if _, err := broken(); err == nil {
		t.Error("ssh through a gateway that was killed succeeds")
	}
	if now := page(t, second, host, "/", cookie); now != started {
		t.Errorf("at another gateway: %q, want %q", now, started)
	}
	if line, err := bufio.NewReader(kept).ReadString('\n'); err != nil || line == "" {
		t.Errorf("a stream through another gateway: %q, %v", line, err)
	}

	stopped := shell(t, third, key, session.Name)
	if err := third.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if said, err := stopped(); err == nil || !strings.Contains(said, "the gateway is restarting: connect again") {
		t.Errorf("ssh through a gateway that stops: %v, %q", err, said)
	}

	node := platform.Agent(on(t, u, session.ID))
	cut := shell(t, second, key, session.Name)
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, kept) // until the connection ends
	if said, err := cut(); err == nil || !strings.Contains(said, "the connection to the session is lost") {
		t.Errorf("ssh to a machine whose agent ends: %v, %q", err, said)
	}
	node.Return(t)
	cluster.Eventually(t, "the app answers again", func() bool { return page(t, second, host, "/", cookie) == started })
}
