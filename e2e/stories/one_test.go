package stories

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// oneBinary creates the image one:1, which contains only one static program, as with FROM scratch.
func oneBinary(t *testing.T) (dir string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "one")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./testdata/one")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	if err := w.WriteHeader(&tar.Header{Name: "one", Mode: 0o755, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(all.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: v1.Config{Cmd: []string{"/one"}}})
	if err == nil {
		img, err = mutate.AppendLayers(img, layer)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "one:1"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A session of an image without a shell, users or libraries starts. A terminal, commands, SSH, SFTP
// and the ports of its program work.
func TestImageOfOneBinary(t *testing.T) {
	platform.OfferLayout(t, oneBinary(t))
	g := platform.Gateway(t, "one-gateway", nil)
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Skipf("ssh-keygen: %v %s", err, out)
	}
	u.Shell().Must("ssh-key", "upload", "laptop", key+".pub")
	session := u.Run(client.CreateSessionInput{Image: "one:1", Slots: cluster.Small()})
	u.Until(session.ID, "RUNNING")

	if got := u.Shell().Must("session", "exec", session.Name, "--", "/one", "say", "hello"); got != "hello\n" {
		t.Errorf("exec: %q", got)
	}
	term, err := u.OpenTerminal(t.Context(), client.TerminalOptions{Session: session.ID, TTY: true, Command: []string{"/one", "say", "in a terminal"}})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	var screen bytes.Buffer
	if code, err := term.Output(t.Context(), &screen, io.Discard); code != 0 || err != nil || screen.String() != "in a terminal\r\n" {
		t.Errorf("terminal: %q, %d, %v", screen.String(), code, err)
	}

	host, port, _ := strings.Cut(g.SSH, ":")
	options := []string{"-i", key, "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + filepath.Join(filepath.Dir(key), "known")}
	run := func(program string, args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), program, append(options[:len(options):len(options)], args...)...).CombinedOutput()
		return string(out), err
	}
	var out string
	cluster.Eventually(t, "ssh reaches the session", func() bool {
		out, err = run("ssh", "-p", port, session.Name+"@"+host, "/one say 'hello  there' ~")
		return err == nil
	})
	if !strings.Contains(out, "hello  there /") {
		t.Errorf("ssh: %q", out)
	}
	if out, err := run("ssh", "-tt", "-p", port, session.Name+"@"+host, "/one say terminal"); err != nil || !strings.Contains(out, "terminal\r\n") {
		t.Errorf("ssh with a terminal: %q, %v", out, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("berth"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("scp", "-P", port, file, session.Name+"@"+host+":copy"); err != nil {
		t.Errorf("scp there: %v %s", err, out)
	}
	if out, err := run("scp", "-P", port, session.Name+"@"+host+":copy", file+".back"); err != nil {
		t.Errorf("scp back: %v %s", err, out)
	}
	if back, err := os.ReadFile(file + ".back"); err != nil || len(back) != 500_000 {
		t.Errorf("%d bytes came back, %v", len(back), err)
	}

	serve := exec.CommandContext(t.Context(), "ssh", append(options[:len(options):len(options)], "-p", port, session.Name+"@"+host, "/one serve 127.0.0.1:7070")...)
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Kill(); _ = serve.Wait() }()
	cluster.Eventually(t, "the port is found", func() bool {
		apps, err := u.Apps(t.Context(), session.ID, "")
		return err == nil && len(apps) == 1 && apps[0].Port == 7070 && apps[0].Status == "RUNNING"
	})
	var opened struct{ OpenApp struct{ URL, Address string } }
	cluster.Eventually(t, "the manager lists the gateway", func() bool {
		resp, err := u.Raw(t.Context(), client.Request{Query: `mutation($in: OpenAppInput!) { openApp(input: $in) { url address } }`, Variables: map[string]any{"in": map[string]any{"session": session.ID, "port": 7070}}})
		return err == nil && resp.Err() == nil && json.Unmarshal(resp.Data, &opened) == nil
	})
	name := strings.TrimSuffix(strings.TrimPrefix(opened.OpenApp.Address, "http://"), "/")
	_, ticket, _ := strings.Cut(opened.OpenApp.URL, name)
	resp, err := visit(t, g, name, ticket, "")
	if err != nil || resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("enter: %v, %+v", err, resp)
	}
	if got := page(t, g, name, "/", resp.Cookies()[0].Name+"="+resp.Cookies()[0].Value); got != "one binary\n" {
		t.Errorf("the port of the program: %q", got)
	}
}
