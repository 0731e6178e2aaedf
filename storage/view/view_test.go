package view_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func TestViewTree(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	h.Write("a/b.txt", "hello")
	h.Write("page.html", "<script>")
	if err := unix.Mkfifo(filepath.Join(h.Path, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(h.Path, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b.txt", filepath.Join(h.Path, "link")); err != nil {
		t.Fatal(err)
	}
	to := func(path string) []string { return []string{"Destination", h.HTTP.URL + "/storage/dav" + path} }
	for _, c := range []struct {
		name, method, path, token, body string
		headers                         []string
		status                          int
	}{
		{"nobody", "PROPFIND", "/", "", "", []string{"Depth", "1"}, 401},
		{"wrong token", "PROPFIND", "/", "guess", "", []string{"Depth", "1"}, 401},
		{"root", "PROPFIND", "/", "rw", "", []string{"Depth", "1"}, 207},
		{"depth infinity", "PROPFIND", "/", "rw", "", []string{"Depth", "infinity"}, 403},
		{"without a depth", "PROPFIND", "/", "rw", "", nil, 403},
		{"read", "GET", "/mine/data/a/b.txt", "rw", "", nil, 200},
		{"some", "GET", "/mine/data/a/b.txt", "rw", "", []string{"Range", "bytes=1-2"}, 206},
		{"read a shared folder", "GET", "/shared/a@b/data/a/b.txt", "ro", "", nil, 200},
		{"the name of another user", "GET", "/mine/data/a/b.txt", "ro", "", nil, 404},
		{"folder of another proxy", "PROPFIND", "/mine/far", "rw", "", []string{"Depth", "0"}, 404},
		{"out with ..", "GET", "/mine/data/../../../../etc/passwd", "rw", "", nil, 400},
		{"out with encoded ..", "GET", "/mine/data/%2e%2e/%2e%2e/etc/passwd", "rw", "", nil, 400},
		{"out through a link", "GET", "/mine/data/out/passwd", "rw", "", nil, 400},
		{"a link", "GET", "/mine/data/link", "rw", "", nil, 404},
		{"a FIFO", "GET", "/mine/data/fifo", "rw", "", nil, 404},
		{"NUL", "GET", "/mine/data/a%00b", "rw", "", nil, 400},
		{"make", "PUT", "/mine/data/new", "rw", "new", nil, 201},
		{"create in a missing directory", "PUT", "/mine/data/no/new", "rw", "new", nil, 409},
		{"create below a file", "PUT", "/mine/data/new/x", "rw", "new", nil, 409},
		{"make a control character", "PUT", "/mine/data/a%0ab", "rw", "new", nil, 400},
		{"make through a link", "PUT", "/mine/data/out/new", "rw", "new", nil, 409},
		{"create outside of folders", "PUT", "/mine/new", "rw", "new", nil, 409},
		{"make a folder", "MKCOL", "/mine/more", "rw", "", nil, 409},
		{"make at the root", "MKCOL", "/more", "rw", "", nil, 409},
		{"write to a read-only folder", "PUT", "/shared/a@b/data/x", "ro", "x", nil, 403},
		{"make there", "MKCOL", "/shared/a@b/data/x", "ro", "", nil, 403},
		{"delete there", "DELETE", "/shared/a@b/data/a", "ro", "", nil, 403},
		{"move there", "MOVE", "/shared/a@b/data/a", "ro", "", to("/shared/a@b/data/c"), 403},
		{"copy there", "COPY", "/shared/a@b/data/a", "ro", "", to("/shared/a@b/data/c"), 403},
		{"lock there", "LOCK", "/shared/a@b/data/a", "ro", lockBody, nil, 403},
		{"change a property there", "PROPPATCH", "/shared/a@b/data/a", "ro", lockBody, nil, 403},
		{"delete a folder", "DELETE", "/mine/data", "rw", "", nil, 403},
		{"delete all folders", "DELETE", "/mine", "rw", "", nil, 403},
		{"move a folder", "MOVE", "/mine/data", "rw", "", to("/mine/other"), 404},
		{"move into itself", "MOVE", "/mine/data/a", "rw", "", to("/mine/data/a/c"), 403},
		{"move onto its parent directory", "MOVE", "/mine/data/a/b.txt", "rw", "", to("/mine/data/a"), 403},
		{"move nothing", "MOVE", "/mine/data/none", "rw", "", to("/mine/data/new"), 404},
		{"move out", "MOVE", "/mine/data/new", "rw", "", to("/mine/data/../../x"), 400},
		{"move", "MOVE", "/mine/data/new", "rw", "", to("/mine/data/moved"), 201},
		{"copy", "COPY", "/mine/data/a", "rw", "", to("/mine/data/c"), 201},
		{"delete", "DELETE", "/mine/data/moved", "rw", "", nil, 204},
		{"unknown method", "FETCH", "/mine/data/a", "rw", "", nil, 400},
	} {
		resp, body := h.WebDAV(c.method, c.path, c.token, c.body, c.headers...)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s %s: %d %q, want %d", c.name, c.method, c.path, resp.StatusCode, body, c.status)
		}
		if strings.Contains(body, "root:") {
			t.Errorf("%s: escaped", c.name)
		}
	}
	_, list := h.WebDAV("PROPFIND", "/mine/data", "rw", "", "Depth", "1")
	for _, name := range []string{"out", "link", "fifo"} {
		if strings.Contains(list, "data/"+name) {
			t.Errorf("%s is listed: %s", name, list)
		}
	}
	if !strings.Contains(list, "/storage/dav/mine/data/a/") || !strings.Contains(list, "/storage/dav/mine/data/c/") {
		t.Errorf("not listed: %s", list)
	}
	if raw, err := os.ReadFile(filepath.Join(h.Path, "c/b.txt")); string(raw) != "hello" {
		t.Errorf("copy: %q, %v", raw, err)
	}
	resp, _ := h.WebDAV("GET", "/mine/data/page.html", "rw", "")
	if resp.Header.Get("Content-Disposition") != "attachment" || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page would run: %v", resp.Header)
	}
	for _, secret := range []string{"guess", "password"} {
		if strings.Contains(h.Logs.String(), secret) {
			t.Errorf("logged: %s", secret)
		}
	}
}

const lockBody = `<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>`

// Two users who see the same folder under different names share its locks.
func TestViewLocks(t *testing.T) {
	t.Parallel()
	h, o := storagetest.NewViews(t)
	other := uuid.New()
	o.Set("other", &storagepb.ListResponse{User: other[:], Folders: []*storagepb.OpenFolder{
		{Folder: h.Ref, Path: []string{"shared", "a@b", "data"}, Read: true, Write: true},
	}})
	h.Write("f", "before")
	resp, body := h.WebDAV("LOCK", "/mine/data/f", "rw", lockBody, "Timeout", "Infinite")
	token := resp.Header.Get("Lock-Token")
	if resp.StatusCode != 200 || token == "" || !strings.Contains(body, "Second-3600") {
		t.Fatalf("lock: %s %s", resp.Status, body)
	}
	if resp, _ := h.WebDAV("PUT", "/shared/a@b/data/f", "other", "x"); resp.StatusCode != 423 {
		t.Errorf("write to a locked file: %s", resp.Status)
	}
	if resp, _ := h.WebDAV("UNLOCK", "/shared/a@b/data/f", "ro", "", "Lock-Token", token); resp.StatusCode != 403 {
		t.Errorf("unlock by a reader: %s", resp.Status)
	}
	if resp, _ := h.WebDAV("PUT", "/mine/data/f", "rw", "after", "If", "("+token+")"); resp.StatusCode != 204 {
		t.Errorf("write with the lock: %s", resp.Status)
	}
	if resp, _ := h.WebDAV("UNLOCK", "/mine/data/f", "rw", "", "Lock-Token", token); resp.StatusCode != 204 {
		t.Errorf("unlock: %s", resp.Status)
	}
	if resp, _ := h.WebDAV("PUT", "/shared/a@b/data/f", "other", "x"); resp.StatusCode != 204 {
		t.Errorf("write afterwards: %s", resp.Status)
	}
}

// Incomplete uploads are never visible, and files that do not fit are rejected.
func TestViewUploads(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	limit := int64(1 << 20)
	if _, err := h.API.SetScopeLimit(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope, LimitBytes: &limit}); err != nil {
		t.Fatal(err)
	}
	h.Write("old", "old")
	big := strings.Repeat("x", 2<<20)
	if resp, body := h.WebDAV("PUT", "/mine/data/old", "rw", big); resp.StatusCode != 507 {
		t.Errorf("too much: %s %s", resp.Status, body)
	}
	if resp, body := h.WebDAVFrom("PUT", "/mine/data/old", "rw", io.MultiReader(strings.NewReader(big))); resp.StatusCode != 507 {
		t.Errorf("too much, of an undeclared size: %s %s", resp.Status, body)
	}
	ctx, cancel := context.WithCancel(h.Ctx())
	r, _ := http.NewRequestWithContext(ctx, "PUT", h.HTTP.URL+"/storage/dav/mine/data/old", io.MultiReader(strings.NewReader("half"), ender{cancel}))
	r.SetBasicAuth("", "rw")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		t.Errorf("a client that went away got %s", resp.Status)
	}
	staged := filepath.Join(filepath.Dir(h.Mount), filepath.Base(h.Mount), strings.ReplaceAll(h.Ref.Scope, "-", ""), ".upload")
	wait.Until(t, "nothing is left of incomplete files", func() bool {
		left, err := os.ReadDir(staged)
		return err == nil && len(left) == 0
	})
	if raw, err := os.ReadFile(filepath.Join(h.Path, "old")); string(raw) != "old" {
		t.Errorf("is now %q, %v", raw, err)
	}
	wait.Until(t, "a small file is accepted", func() bool {
		resp, _ := h.WebDAV("PUT", "/mine/data/old", "rw", "new")
		return resp.StatusCode == 204
	})
}

// Managers receive sums of file activity, not single files, including the activity from the time
// when no manager was connected.
func TestViewTrail(t *testing.T) {
	t.Parallel()
	h, o := storagetest.NewViews(t)
	h.Write("old", "old")
	o.Mu.Lock()
	o.Away = true
	credential := uuid.New()
	o.Opens["rw"].Credential, o.Opens["rw"].Address = credential[:], "192.0.2.7"
	o.Mu.Unlock()
	for i := range 30 {
		h.WebDAV("PUT", fmt.Sprintf("/mine/data/f%02d", i), "rw", "12345")
	}
	h.WebDAV("GET", "/mine/data/old", "rw", "")
	h.WebDAV("MKCOL", "/mine/data/dir", "rw", "")
	h.WebDAV("MOVE", "/mine/data/old", "rw", "", "Destination", h.HTTP.URL+"/storage/dav/mine/data/dir/new")
	h.WebDAV("DELETE", "/mine/data/f00", "rw", "")
	h.WebDAV("PUT", "/shared/a@b/data/f", "ro", "refused")
	h.Stop() // unsent activity is sent after the next start
	o.Mu.Lock()
	o.Away = false
	o.Mu.Unlock()
	h.Start()
	wait.Until(t, "the manager gets the activity", func() bool {
		o.Mu.Lock()
		defer o.Mu.Unlock()
		return len(o.Told) > 0
	})
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if len(o.Told) != 1 {
		t.Fatalf("told %v", o.Told)
	}
	d := o.Told[0]
	if d.Protocol != "WebDAV" || d.Folder != h.Ref.Folder || d.Address != "192.0.2.7" || !bytes.Equal(d.Credential, credential[:]) || d.EndedUnixMs < d.BeganUnixMs {
		t.Errorf("told %v", d)
	}
	var got []string
	for _, x := range d.Operations {
		got = append(got, fmt.Sprintf("%v %d of %d bytes: %s", x.Kind, x.Count, x.Bytes, strings.Join(x.Paths, ", ")))
	}
	if diff := cmp.Diff([]string{
		"WROTE 30 of 150 bytes: f00, f01, f02, f03, f04", "READ 1 of 3 bytes: old", "MADE 1 of 0 bytes: dir",
		"MOVED 1 of 0 bytes: old → dir/new", "REMOVED 1 of 0 bytes: f00",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// ender cancels a request whose body is half sent.
type ender struct{ cancel func() }

func (e ender) Read([]byte) (int, error) {
	e.cancel()
	return 0, context.Canceled
}

// A revoked token stops working, and its unfinished requests end.
func TestViewEnds(t *testing.T) {
	t.Parallel()
	h, o := storagetest.NewViews(t)
	h.Write("f", "f")
	if resp, _ := h.WebDAV("GET", "/mine/data/f", "rw", ""); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	feed, half := io.Pipe()
	done := make(chan int, 1)
	go func() {
		resp, _ := h.WebDAVFrom("PUT", "/mine/data/late", "rw", feed)
		done <- resp.StatusCode
	}()
	if _, err := half.Write([]byte("some")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o.Set("rw", nil)
	wait.Until(t, "the token is refused", func() bool {
		resp, _ := h.WebDAV("GET", "/mine/data/f", "rw", "")
		return resp.StatusCode == 401
	})
	t.Logf("the token was refused after %v", time.Since(began))
	_, _ = half.Write([]byte("more"))
	half.Close()
	if status := <-done; status != 401 {
		t.Errorf("the upload went on: %d", status)
	}
	if _, err := os.Stat(filepath.Join(h.Path, "late")); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

// run runs a client program.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestLitmus(t *testing.T) {
	t.Parallel()
	litmus := storagetest.RequireProgram(t, "litmus")
	h, _ := storagetest.NewViews(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, litmus, "-k", h.HTTP.URL+"/storage/dav/mine/data/", "me", "rw")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "TESTS=basic copymove locks http")
	cmd.Env = append(cmd.Env, "HTDOCS=/usr/share/litmus/htdocs")
	out, _ := cmd.CombinedOutput() // the program fails when one of its tests fails
	var failed []string
	for _, m := range regexp.MustCompile(`\d+\. (\w+?)\.+ FAIL`).FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, m[1])
	}
	// Properties of clients are not stored, and shared locks are not supported.
	if want := []string{"owner_modify", "lock_shared", "owner_modify"}; !slices.Equal(failed, want) {
		t.Errorf("failed %q, want %q:\n%s", failed, want, out)
	}
	if n := strings.Count(string(out), "<- summary for"); n != 4 {
		t.Errorf("%d of 4 suites ended:\n%s", n, out)
	}
}

func TestRcloneWebDAV(t *testing.T) {
	t.Parallel()
	rclone := storagetest.RequireProgram(t, "rclone")
	h, _ := storagetest.NewViews(t)
	secret := strings.TrimSpace(run(t, rclone, "obscure", "rw"))
	rcloneRound(t, h, "[berth]\ntype = webdav\nurl = "+h.HTTP.URL+"/storage/dav\nvendor = other\nuser = me\npass = "+secret+"\n")
}

// rcloneRound copies, checks, moves and deletes with rclone.
func rcloneRound(t *testing.T, h *storagetest.Host, text string) {
	t.Helper()
	rclone := storagetest.RequireProgram(t, "rclone")
	config := filepath.Join(t.TempDir(), "rclone.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	source := files(t)
	do := func(args ...string) string { return run(t, rclone, append([]string{"--config", config}, args...)...) }
	if out := do("lsf", "berth:"); out != "mine/\n" {
		t.Errorf("root: %q", out)
	}
	do("copy", source, "berth:mine/data/up")
	do("check", "--download", source, "berth:mine/data/up")
	do("moveto", "berth:mine/data/up/a.bin", "berth:mine/data/up/dir/b.bin")
	if _, err := os.Stat(filepath.Join(h.Path, "up/dir/b.bin")); err != nil {
		t.Error(err)
	}
	do("sync", source, "berth:mine/data/up")
	do("check", "--download", source, "berth:mine/data/up")
	do("purge", "berth:mine/data/up")
	if _, err := os.Stat(filepath.Join(h.Path, "up")); !os.IsNotExist(err) {
		t.Errorf("after purge: %v", err)
	}
}

// If several clients conditionally replace or create the same file, exactly one succeeds.
func TestViewConditions(t *testing.T) {
	t.Parallel()
	h, _ := storagetest.NewViews(t)
	const path = "/mine/data/f"
	put := func(body string, headers ...string) (int, string) {
		resp, _ := h.WebDAV("PUT", path, "rw", body, headers...)
		return resp.StatusCode, resp.Header.Get("ETag")
	}
	if status, _ := put("x", "If-Match", "*"); status != 412 {
		t.Errorf("replaced a missing file: %d", status)
	}
	race := func(header, value string) (winners int) {
		var all sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			all.Go(func() { statuses[i], _ = put(fmt.Sprint("racer ", i), header, value) })
		}
		all.Wait()
		for i, status := range statuses {
			switch status {
			case 201, 204:
				winners++
				if raw, err := os.ReadFile(filepath.Join(h.Path, "f")); string(raw) != fmt.Sprint("racer ", i) {
					t.Errorf("%s: %q, %v", header, raw, err)
				}
			case 412: // WebDAV allows one writer at a time
			default:
				t.Errorf("%s: %d", header, status)
			}
		}
		return winners
	}
	if n := race("If-None-Match", "*"); n != 1 {
		t.Errorf("%d created the file", n)
	}
	_, first := put("first")
	if n := race("If-Match", first); n != 1 {
		t.Errorf("%d replaced the same file", n)
	}
	_, tag := put("now")
	for _, c := range []struct {
		name, header, value string
		status              int
	}{
		{"an old tag", "If-Match", first, 412},
		{"a weak tag", "If-Match", "W/" + tag, 412},
		{"no tag", "If-Match", "now", 400},
		{"an unterminated tag", "If-None-Match", `"now`, 400},
		{"not this one", "If-None-Match", tag, 412},
		{"not this one, weakly", "If-None-Match", `"other", W/` + tag, 412},
		{"one of two", "If-Match", `"other", ` + tag, 204},
	} {
		before, _ := os.ReadFile(filepath.Join(h.Path, "f"))
		status, _ := put("after", c.header, c.value)
		after, _ := os.ReadFile(filepath.Join(h.Path, "f"))
		if status != c.status || (status == 204) == (string(after) == string(before)) {
			t.Errorf("%s: %d, want %d; it holds %q", c.name, status, c.status, after)
		}
	}
	if status, _ := put("other", "If-None-Match", `"other"`); status != 204 {
		t.Errorf("not another one: %d", status)
	}
	// A session changes the file while the body arrives.
	for _, name := range []string{"there", "new"} {
		header, value := "If-None-Match", "*"
		if name == "there" {
			h.Write(name, "before")
			header, value = "If-Match", "*"
			resp, _ := h.WebDAV("HEAD", "/mine/data/"+name, "rw", "")
			value = resp.Header.Get("ETag")
		}
		feed, half := io.Pipe()
		done := make(chan int, 1)
		go func() {
			resp, _ := h.WebDAVFrom("PUT", "/mine/data/"+name, "rw", feed, header, value)
			done <- resp.StatusCode
		}()
		if _, err := half.Write([]byte("some")); err != nil {
			t.Fatal(err)
		}
		h.Write(name, "from a session")
		half.Close()
		if status := <-done; status != 412 {
			t.Errorf("%s: %d", name, status)
		}
		if raw, err := os.ReadFile(filepath.Join(h.Path, name)); string(raw) != "from a session" {
			t.Errorf("%s: lost, it holds %q, %v", name, raw, err)
		}
	}
}
