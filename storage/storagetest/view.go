package storagetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/storage/storagepb"
)

// NewSFTP is NewViews with SFTP at an address.
func NewSFTP(t testing.TB) (h *Host, o *Manager, address string) {
	t.Helper()
	h = New(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.Config.SFTP = l
	return h, h.Open(t), l.Addr().String()
}

// DialSFTP connects to the address with golang.org/x/crypto/ssh.
func DialSFTP(t testing.TB, address, token string) (*ssh.Client, error) {
	t.Helper()
	c, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
		User: "me@example.org", Auth: []ssh.AuthMethod{ssh.Password(token)}, Timeout: 30 * time.Second,
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// SFTPClient connects to the address and starts SFTP.
func SFTPClient(t testing.TB, address, token string) *sftp.Client {
	t.Helper()
	c, err := DialSFTP(t, address, token)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// OpenSSH runs OpenSSH's sftp with commands, and returns its output.
func OpenSSH(t *testing.T, address, token string, commands ...string) (string, error) {
	t.Helper()
	host, port, _ := net.SplitHostPort(address)
	dir := t.TempDir()
	ask := filepath.Join(dir, "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho "+token+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// With a batch file, OpenSSH does not prompt for a password, so the commands come from standard
	// input.
	cmd := exec.CommandContext(ctx, RequireProgram(t, "sftp"), "-P", port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile="+dir+"/known",
		"-o", "NumberOfPasswordPrompts=1", "-o", "PubkeyAuthentication=no", "me@example.org@"+host)
	cmd.Env = append(os.Environ(), "SSH_ASKPASS="+ask, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0", "LC_ALL=C.UTF-8")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	return string(out), err
}

// ErrorClass returns the kind of error that a client sees: ok, absent, denied or failure.
func ErrorClass(err error) string {
	switch {
	case err == nil:
		return "ok"
	case os.IsNotExist(err):
		return "absent"
	case os.IsPermission(err):
		return "denied"
	}
	return "failure"
}

// Manager returns the folders that a token or key opens, and records the activities that the proxy
// reports.
type Manager struct {
	Mu    sync.Mutex
	Opens map[string]*storagepb.ListResponse
	Away  bool
	Told  []*storagepb.FileActivity
}

func (o *Manager) Record(_ context.Context, q *storagepb.RecordRequest) (*storagepb.RecordResponse, error) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if o.Away {
		return nil, fmt.Errorf("away: %w", errdefs.ErrUnavailable)
	}
	o.Told = append(o.Told, q.Activities...)
	return &storagepb.RecordResponse{}, nil
}

func (o *Manager) List(_ context.Context, q *storagepb.ListRequest) (*storagepb.ListResponse, error) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	r := o.Opens[q.Token]
	if len(q.PublicKey) > 0 {
		r = o.Opens[q.Email+" "+ssh.FingerprintSHA256(Must(ssh.ParsePublicKey(q.PublicKey)))]
	}
	if r == nil {
		return nil, fmt.Errorf("token: %w", errdefs.ErrUnauthenticated)
	}
	return r, nil
}

// Must returns v, and panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Set sets the folders that a token opens.
func (o *Manager) Set(token string, r *storagepb.ListResponse) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.Opens[token] = r
}

// NewViews is New with a manager that opens the folder to the token "rw" as mine/data, and to the
// token "ro", only for reading, as shared/a@b/data.
func NewViews(t *testing.T) (*Host, *Manager) {
	t.Helper()
	h := New(t)
	return h, h.Open(t)
}

// Open starts the proxy again with the manager of NewViews.
func (h *Host) Open(t testing.TB) *Manager {
	o := &Manager{Opens: map[string]*storagepb.ListResponse{}}
	h.Stop()
	h.Config.Manager = o
	h.Start()
	user := uuid.New()
	o.Set("rw", &storagepb.ListResponse{User: user[:], Folders: []*storagepb.OpenFolder{
		{Folder: h.Ref, Path: []string{"mine", "data"}, Read: true, Write: true},
		{Folder: &storagepb.FolderRef{Volume: "elsewhere", Scope: h.Ref.Scope, Folder: uuid.NewString()}, Path: []string{"mine", "far"}, Read: true},
	}})
	o.Set("ro", &storagepb.ListResponse{User: user[:], Folders: []*storagepb.OpenFolder{
		{Folder: h.Ref, Path: []string{"shared", "a@b", "data"}, Read: true},
	}})
	return o
}

// WebDAV sends a WebDAV request; headers are pairs.
func (h *Host) WebDAV(method, path, token, body string, headers ...string) (*http.Response, string) {
	h.TB.Helper()
	return h.WebDAVFrom(method, path, token, strings.NewReader(body), headers...)
}

// WebDAVFrom is WebDAV with a body that is read as it is sent.
func (h *Host) WebDAVFrom(method, path, token string, body io.Reader, headers ...string) (*http.Response, string) {
	h.TB.Helper()
	r, err := http.NewRequestWithContext(h.Ctx(), method, h.HTTP.URL+"/storage/dav"+path, body)
	if err != nil {
		h.TB.Fatal(err)
	}
	if token != "" {
		r.SetBasicAuth("me@example.org", token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		h.TB.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp, string(raw)
}

// RequireProgram returns the path of a client's program, and skips the test without it.
func RequireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (make setup)", name)
	}
	return path
}
