package build_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/berthhq/berth/agent/build"
)

// inside is the address of the Git server in the network of the sandbox.
const inside = "10.98.76.54"

// gitServer serves a directory with repositories over HTTPS in the network of the sandbox. What is below private needs
// a token, and what is below away redirects to another host.
func (s *site) gitServer(t *testing.T, dir string) (address string) {
	t.Helper()
	backend := "/usr/lib/git-core/git-http-backend"
	if _, err := os.Stat(backend); err != nil {
		t.Skipf("no Git server: %v", err)
	}
	git := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, token, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, "https://10.98.76.55/x", http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/private") && token != "let me in":
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		default:
			git.ServeHTTP(w, r)
		}
	})}
	listener := make(chan net.Listener, 1)
	go func() {
		lockThread()
		listener <- listenIn(t, s.netns)
	}()
	l := <-listener
	if l == nil {
		t.FailNow()
	}
	cert, file := certificate(t)
	s.program(t, "SSL_CERT_FILE="+file)
	go server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})) //nolint:errcheck // until Close
	t.Cleanup(func() { _ = server.Close() })
	return "https://" + l.Addr().String()
}

// listenIn adds an address to a network namespace and listens there. The thread is in the namespace afterwards.
func listenIn(t *testing.T, path string) net.Listener {
	ns, err := netns.GetFromPath(path)
	if err == nil {
		defer ns.Close()
		err = netns.Set(ns)
	}
	var lo netlink.Link
	if err == nil {
		lo, err = netlink.LinkByName("lo")
	}
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err == nil {
		err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(inside), Mask: net.CIDRMask(32, 32)}})
	}
	var l net.Listener
	if err == nil {
		l, err = net.Listen("tcp4", inside+":0")
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	return l
}

// certificate returns a certificate for the server, and a file that makes clients trust it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(inside)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// repository creates a Git repository with two commits, and returns the first.
func repository(t *testing.T, dir string) (first string) {
	t.Helper()
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	put := func(name, text string) {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q", "-b", "main")
	run("config", "uploadpack.allowAnySHA1InWant", "true")
	put("docker/Dockerfile", "FROM base\nCOPY . /data/\n")
	put("docker/note", "first")
	put("Dockerfile", "FROM base\nCOPY docker/note /data/note\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "docker/link")); err != nil {
		t.Fatal(err)
	}
	run("add", ".")
	run("commit", "-q", "-m", "first")
	first = run("rev-parse", "HEAD")
	run("tag", "-a", "v1", "-m", "tag")
	put("docker/note", "second")
	run("commit", "-q", "-a", "-m", "second")
	return first
}

// A build of a repository fetches over the network of the sandbox, and gets the files of one commit.
func TestGitRepositories(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	first := repository(t, filepath.Join(dir, "a"))
	if err := os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "private")); err != nil {
		t.Fatal(err)
	}
	address := s.gitServer(t, dir)
	for name, c := range map[string]struct {
		source build.Source
		note   string
		commit string
	}{
		"the default branch": {build.Source{Address: address + "/a/.git"}, "second", ""},
		"a tag":              {build.Source{Address: address + "/a/.git", Ref: "v1", Directory: "docker"}, "first", first},
		"a commit":           {build.Source{Address: address + "/a/.git", Ref: first, Directory: "docker/"}, "first", first},
		"a private one":      {build.Source{Address: address + "/private/.git", Username: "git", Password: "let me in", Directory: "docker"}, "second", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.source.ID = "kernel"
			got, text, err := s.fetch(t, c.source)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if c.commit != "" && got.Commit != c.commit || got.File != "Dockerfile" || got.ContainerFiles["Dockerfile"] != got.Text {
				t.Errorf("the source is %+v", got)
			}
			r := s.request(got.Text)
			r.Source.ID = c.source.ID
			done, _ := s.must(t, "one", r)
			if note := files(t, s.image(t, r, done.Digest))["data/note"]; note != c.note {
				t.Errorf("the image has %q, not %q", note, c.note)
			}
			if _, text, err := s.build(t, "one", r); err == nil {
				t.Errorf("the files of the repository are used twice:\n%s", text)
			}
		})
	}
}

// What a repository or its address can do wrong is refused, and credentials go to no other host.
func TestHostileGitRepositories(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	repository(t, filepath.Join(dir, "a"))
	address := s.gitServer(t, dir)
	host, err := net.Listen("tcp", "127.0.0.1:0") // stands for any service of the host
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	outside := machineAddress(t)
	for name, c := range map[string]struct {
		source build.Source
		want   string
	}{
		"a file of the machine":        {build.Source{Address: "file://" + dir + "/a"}, "https://"},
		"a path":                       {build.Source{Address: dir + "/a"}, "https://"},
		"SSH":                          {build.Source{Address: "ssh://git@10.0.0.1/a"}, "https://"},
		"the loopback":                 {build.Source{Address: "https://" + host.Addr().String() + "/a"}, "machine itself"},
		"the metadata address":         {build.Source{Address: "https://169.254.169.254/a"}, "machine itself"},
		"the network of the host":      {build.Source{Address: "https://" + outside + "/a"}, "connect"},
		"a redirect to another host":   {build.Source{Address: address + "/away", Username: "git", Password: "secret"}, "redirects"},
		"a missing token":              {build.Source{Address: address + "/private/.git"}, "auth"},
		"a missing branch":             {build.Source{Address: address + "/a/.git", Ref: "other"}, "no branch or tag"},
		"a directory outside":          {build.Source{Address: address + "/a/.git", Directory: "../.."}, "not inside"},
		"a description that is a link": {build.Source{Address: address + "/a/.git", Directory: "docker", File: "link"}, "link"},
		"an id that is a path":         {build.Source{ID: "../../x", Address: address + "/a/.git"}, "malformed"},
	} {
		if c.source.ID == "" {
			c.source.ID = "kernel"
		}
		if _, text, err := s.fetch(t, c.source); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// machineAddress returns the address of a server in the network of the test, which the sandbox cannot reach.
func machineAddress(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return ip.IP.String()
		}
	}
	return "192.0.2.1"
}

func (s *site) fetch(t *testing.T, source build.Source) (*build.Fetched, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := s.request("")
	r.Source = source
	l := &log{}
	got, err := s.Fetch(ctx, "one", r, l.add)
	return got, l.String(), err
}
