package storage_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

func TestReport(t *testing.T) {
	h := storagetest.New(t)
	watch, err := h.API.Watch(h.Ctx(), &storagepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := watch.Recv()
	if err != nil {
		t.Fatal(err)
	}
	v := r.Volumes[0]
	if r.Name != "s1" || r.PublicUrl != "/storage" || r.Incarnation == "" || len(r.Volumes) != 1 {
		t.Errorf("report %v", r)
	}
	if v.Name != "main" || v.Backend != "vfs" || v.TotalBytes <= 0 || v.UsedBytes <= 0 || v.UsedBytes > v.TotalBytes {
		t.Errorf("volume %v", v)
	}
	if d := cmp.Diff([]string{"scope", "quota-bytes", "capacity", "list-scopes"}, v.Capabilities); d != "" {
		t.Error(d)
	}
}

func TestScopes(t *testing.T) {
	h := storagetest.New(t)
	limit := func(n int64) *int64 { return &n }
	scope := uuid.NewString()
	get := func() *storagepb.Scope {
		t.Helper()
		s, err := h.API.GetScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	_, err := h.API.GetScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope})
	storagetest.WantCode(t, err, codes.NotFound)
	for range 2 { // idempotent
		s, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope, LimitBytes: limit(1 << 20)})
		if err != nil {
			t.Fatal(err)
		}
		if s.GetLimitBytes() != 1<<20 || s.Enforcement != "cooperative" {
			t.Errorf("scope %v", s)
		}
	}
	for _, want := range []*int64{limit(0), nil, limit(5)} {
		if _, err := h.API.SetScopeLimit(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope, LimitBytes: want}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, get().LimitBytes); d != "" {
			t.Errorf("limit: %s", d)
		}
	}
	ref := &storagepb.FolderRef{Volume: "main", Scope: scope, Folder: uuid.NewString()}
	f, err := h.API.CreateFolder(h.Ctx(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Mount, f.Path, "x"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if used := get().GetUsedBytes(); used < 1<<20 || used > 2<<20 {
		t.Errorf("used %d bytes, want about 1 MiB", used)
	}
	_, err = h.API.DeleteScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope})
	storagetest.WantCode(t, err, codes.FailedPrecondition)
	if _, err := os.Stat(filepath.Join(h.Mount, f.Path, "x")); err != nil {
		t.Errorf("a refused deletion removed a file: %v", err)
	}
	storagetest.DeleteFolder(t, h, ref)
	for range 2 {
		if _, err := h.API.DeleteScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = h.API.CreateFolder(h.Ctx(), ref)
	storagetest.WantCode(t, err, codes.NotFound)
}

func TestFolderLayoutAndModes(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	h := storagetest.New(t)
	hex := strings.ReplaceAll(h.Ref.Folder, "-", "")
	want := filepath.Join(h.Mount, strings.ReplaceAll(h.Ref.Scope, "-", ""), hex[:2], hex[2:4], hex[4:])
	if h.Path != want {
		t.Errorf("path %s, want %s", h.Path, want)
	}
	if err := h.MakeDirectory("a/b"); err != nil {
		t.Fatal(err)
	}
	scope := filepath.Dir(filepath.Dir(filepath.Dir(h.Path)))
	for p, mode := range map[string]os.FileMode{h.Mount: 0o700, scope: 0o700, filepath.Dir(h.Path): 0o700, h.Path: 0o775, filepath.Join(h.Path, "a"): 0o775, filepath.Join(h.Path, "a/b"): 0o775} {
		st, err := os.Stat(p)
		if err != nil || st.Mode().Perm() != mode || !st.IsDir() {
			t.Errorf("%s: %v %v", p, st.Mode(), err)
		}
	}
	again, err := h.API.CreateFolder(h.Ctx(), h.Ref)
	if err != nil || filepath.Join(h.Mount, again.Path) != h.Path {
		t.Errorf("created again: %v %v", again, err)
	}
	h.Write("a/x", strings.Repeat("x", 100_000))
	got, err := h.API.GetFolder(h.Ctx(), h.Ref)
	if err != nil || got.GetFiles() != 1 || got.GetUsedBytes() < 100_000 || !got.Exact {
		t.Errorf("folder %v %v", got, err)
	}
	_, err = h.API.GetFolder(h.Ctx(), &storagepb.FolderRef{Volume: "main", Scope: h.Ref.Scope, Folder: uuid.NewString()})
	storagetest.WantCode(t, err, codes.NotFound)
	_, err = h.API.GetFolder(h.Ctx(), &storagepb.FolderRef{Volume: "none", Scope: h.Ref.Scope, Folder: h.Ref.Folder})
	storagetest.WantCode(t, err, codes.NotFound)
	_, err = h.API.CreateFolder(h.Ctx(), &storagepb.FolderRef{Volume: "main", Scope: "../..", Folder: h.Ref.Folder})
	storagetest.WantCode(t, err, codes.InvalidArgument)
}

func TestFiles(t *testing.T) {
	h := storagetest.New(t)
	h.Write("a.txt", "one")
	h.Write("sub/deep/b.txt", "two")
	h.Write("naïve \"q\" \n name", "three")
	list := func(path string) (names []string) {
		t.Helper()
		r, err := h.API.ListFiles(h.Ctx(), &storagepb.ListFilesRequest{Folder: h.Ref, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Files {
			names = append(names, f.Name)
		}
		return names
	}
	if d := cmp.Diff([]string{"a.txt", "naïve \"q\" \n name", "sub"}, list("")); d != "" {
		t.Error(d)
	}
	st, err := h.API.StatFile(h.Ctx(), &storagepb.FileRef{Folder: h.Ref, Path: "sub/deep/b.txt"})
	if err != nil || st.Size != 3 || st.Type != storagepb.FileInfo_FILE || st.Name != "b.txt" || st.Mode != 0o644 ||
		time.Since(time.UnixMilli(st.ModifiedUnixMs)).Abs() > time.Minute {
		t.Errorf("stat %v %v", st, err)
	}
	storagetest.WantCode(t, h.MoveFile("a.txt", "sub/deep/b.txt", false), codes.AlreadyExists)
	storagetest.WantCode(t, h.MoveFile("a.txt", "sub/deep/b.txt", true), codes.OK)
	storagetest.WantCode(t, h.MoveFile("a.txt", "c.txt", true), codes.NotFound)
	storagetest.WantCode(t, h.MoveFile("sub", "sub/deep/in", false), codes.InvalidArgument)
	storagetest.WantCode(t, h.MoveFile("sub/deep", "top", false), codes.OK)
	if b, err := os.ReadFile(filepath.Join(h.Path, "top/b.txt")); err != nil || string(b) != "one" {
		t.Errorf("moved file holds %q, %v", b, err)
	}
	storagetest.WantCode(t, h.MakeDirectory("top/b.txt"), codes.AlreadyExists)
	paths := []string{"top", "absent", "../x", "sub", "link"}
	if err := os.Symlink("top", filepath.Join(h.Path, "link")); err != nil {
		t.Fatal(err)
	}
	refused := []codes.Code{codes.FailedPrecondition, codes.OK, codes.InvalidArgument, codes.FailedPrecondition, codes.OK}
	for i, r := range h.DeleteFiles(false, paths...) {
		storagetest.WantCode(t, r.Err(), refused[i])
	}
	if _, err := os.Stat(filepath.Join(h.Path, "top/b.txt")); err != nil {
		t.Errorf("a refused deletion: %v", err)
	}
	for i, r := range h.DeleteFiles(true, paths...) {
		if want := (i == 2); (r.Error != "") != want {
			t.Errorf("result %v", r)
		}
	}
	if d := cmp.Diff([]string{"naïve \"q\" \n name"}, list("")); d != "" {
		t.Error(d)
	}
}

func TestHostilePaths(t *testing.T) {
	h := storagetest.New(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"abs": secret, "rel": "../../../../..", "dir": filepath.Dir(secret)} {
		if err := os.Symlink(to, filepath.Join(h.Path, link)); err != nil {
			t.Fatal(err)
		}
	}
	h.Write("mine", "m")
	for _, path := range []string{
		"..", "../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a\x00b", strings.Repeat("n", 256),
		strings.Repeat("d/", 2100) + "x", "rel/x", "dir/secret", "abs/x",
	} {
		t.Run(fmt.Sprintf("%.20q", path), func(t *testing.T) {
			ref := &storagepb.FileRef{Folder: h.Ref, Path: path}
			_, err := h.API.StatFile(h.Ctx(), ref)
			storagetest.WantCode(t, err, codes.InvalidArgument)
			storagetest.WantCode(t, h.MakeDirectory(path), codes.InvalidArgument)
			_, err = h.API.ListFiles(h.Ctx(), &storagepb.ListFilesRequest{Folder: h.Ref, Path: path})
			storagetest.WantCode(t, err, codes.InvalidArgument)
			storagetest.WantCode(t, h.MoveFile("mine", path, false), codes.InvalidArgument)
			storagetest.WantCode(t, h.MoveFile(path, "new", false), codes.InvalidArgument)
			storagetest.WantCode(t, h.DeleteFiles(true, path)[0].Err(), codes.InvalidArgument)
			_, err = h.API.SearchFiles(h.Ctx(), &storagepb.SearchFilesRequest{Folder: h.Ref, Path: path, Text: "x"})
			storagetest.WantCode(t, err, codes.InvalidArgument)
			copies, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("mine", path, path, "new")})
			if err != nil || len(copies) != 2 {
				t.Fatal(copies, err)
			}
			for _, r := range copies {
				storagetest.WantCode(t, r.Err(), codes.InvalidArgument)
			}
		})
	}
	for _, path := range []string{"tab\there", "new\nline", "del\x7f", "c1\u0085"} {
		storagetest.WantCode(t, h.MakeDirectory(path), codes.InvalidArgument)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Errorf("secret: %v", err)
	}
	// Links themselves can be seen and removed.
	st, err := h.API.StatFile(h.Ctx(), &storagepb.FileRef{Folder: h.Ref, Path: "abs"})
	if err != nil || st.Type != storagepb.FileInfo_SYMLINK {
		t.Errorf("stat of a link: %v %v", st, err)
	}
	for _, r := range h.DeleteFiles(true, "abs", "dir") {
		storagetest.WantCode(t, r.Err(), codes.OK)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Errorf("secret: %v", err)
	}
}

func TestListLargeDirectory(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	const n = 100_000
	for i := range n {
		h.Touch(fmt.Sprintf("f%06d", i))
	}
	q := &storagepb.ListFilesRequest{Folder: h.Ref, Limit: 1000}
	began := time.Now()
	r, err := h.API.ListFiles(h.Ctx(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first page of %d: %v", n, time.Since(began)) // about 50 ms when the machine is idle
	if len(r.Files) != 1000 || r.Files[0].Name != "f000000" || r.Files[999].Name != "f000999" {
		t.Fatalf("%d files, first %v", len(r.Files), r.Files[0])
	}
	// Later pages neither repeat nor miss entries, even when entries are created and deleted
	// meanwhile.
	if err := os.Remove(filepath.Join(h.Path, "f000999")); err != nil {
		t.Fatal(err)
	}
	h.Write("f000000a", "")
	q.Cursor = r.NextCursor
	if r, err = h.API.ListFiles(h.Ctx(), q); err != nil || r.Files[0].Name != "f001000" {
		t.Fatalf("second page: %v", err)
	}
	q.Cursor = ""
	seen := 0
	for last := ""; ; {
		if r, err = h.API.ListFiles(h.Ctx(), q); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Files {
			if f.Name <= last {
				t.Fatalf("%q after %q", f.Name, last)
			}
			last = f.Name
			seen++
		}
		if q.Cursor = r.NextCursor; q.Cursor == "" {
			break
		}
	}
	if seen != n {
		t.Errorf("%d entries, want %d", seen, n)
	}
	q.Cursor = "?"
	_, err = h.API.ListFiles(h.Ctx(), q)
	storagetest.WantCode(t, err, codes.InvalidArgument)
}

func TestDeleteFolderIsResumed(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	for i := range 60 {
		h.Write(fmt.Sprintf("d%d/f", i), "")
		for j := range 500 {
			h.Touch(fmt.Sprintf("d%d/f%d", i, j))
		}
	}
	outside := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(h.Path, "link")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.Ctx())
	stream, err := h.API.DeleteFolder(ctx, h.Ref)
	if err != nil {
		t.Fatal(err)
	}
	for p, err := stream.Recv(); p.GetFiles() == 0; p, err = stream.Recv() {
		if err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	h.Stop() // the proxy stops in the middle
	if _, err := os.Stat(h.Path); !os.IsNotExist(err) {
		t.Errorf("folder is still at its place: %v", err)
	}
	left := func() (n int) {
		_ = filepath.WalkDir(h.Mount, func(path string, d os.DirEntry, err error) error {
			// Folders' own directories have longer names, in hex.
			if up := filepath.Base(filepath.Dir(path)); err == nil && len(up) <= 3 && strings.HasPrefix(up, "d") && d.Type().IsRegular() {
				n++
			}
			return nil
		})
		return n
	}
	if left() == 0 {
		t.Error("nothing was interrupted")
	}
	h.Start()
	p := storagetest.DeleteFolder(t, h, h.Ref)
	if !p.Finished || p.Files != p.FilesTotal {
		t.Errorf("last progress %v", p)
	}
	if n := left(); n > 0 {
		t.Errorf("%d files left", n)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("behind a link: %v", err)
	}
	if p := storagetest.DeleteFolder(t, h, h.Ref); !p.Finished {
		t.Errorf("absent folder: %v", p)
	}
}

func TestDeleteVeryDeepFolder(t *testing.T) {
	h := storagetest.NewOn(t, storagetest.Memory(t))
	at, err := unix.Open(h.Path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 { // deeper than the longest possible path
		if err := unix.Mkdirat(at, "dddddddd", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "dddddddd", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	unix.Close(at)
	if p := storagetest.DeleteFolder(t, h, h.Ref); !p.Finished {
		t.Errorf("progress %v", p)
	}
	if _, err := os.Stat(h.Path); !os.IsNotExist(err) {
		t.Errorf("folder: %v", err)
	}
}

func TestUnmountedVolumeIsRefused(t *testing.T) {
	h := storagetest.New(t)
	h.Write("x", "x")
	// After an unmount, only the bare mount point is left.
	away := h.Mount + ".away"
	wait.Until(t, "the volume is unmounted", func() bool {
		_ = unix.Unmount(h.Mount, unix.MNT_DETACH) // the proxy has bound the directory onto itself
		return os.Rename(h.Mount, away) == nil
	})
	if err := os.Mkdir(h.Mount, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := h.API.CreateFolder(h.Ctx(), &storagepb.FolderRef{Volume: "main", Scope: h.Ref.Scope, Folder: uuid.NewString()})
	storagetest.WantCode(t, err, codes.Unavailable)
	_, err = h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: uuid.NewString()})
	storagetest.WantCode(t, err, codes.Unavailable)
	_, err = h.API.MakeDirectories(h.Ctx(), &storagepb.MakeDirectoriesRequest{Folder: h.Ref, Paths: []string{"d"}})
	storagetest.WantCode(t, err, codes.Unavailable)
	_, err = h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("x", "y")})
	storagetest.WantCode(t, err, codes.Unavailable)
	_, err = h.API.SearchFiles(h.Ctx(), &storagepb.SearchFilesRequest{Folder: h.Ref, Text: "x"})
	storagetest.WantCode(t, err, codes.Unavailable)
	_, err = (&storagetest.Moving{Host: h}).Clone(&storagepb.FolderRef{Volume: "main", Scope: h.Ref.Scope, Folder: uuid.NewString()})
	storagetest.WantCode(t, err, codes.Unavailable)
	_, err = h.API.MoveFolder(h.Ctx(), &storagepb.MoveFolderRequest{Folder: h.Ref, ToScope: uuid.NewString()})
	storagetest.WantCode(t, err, codes.Unavailable)
	if code := h.Tus("POST", "/uploads", h.Ticket("upload", "y", 1), nil, "Upload-Length", "1").StatusCode; code != 503 {
		t.Errorf("upload: %d", code)
	}
	h.WaitHealth(storagepb.Volume_UNAVAILABLE)
	if left, err := os.ReadDir(h.Mount); err != nil || len(left) > 0 {
		t.Errorf("written to the bare mount point: %v %v", left, err)
	}
	// The volume becomes available again, also after a restart of the proxy.
	if err := os.Remove(h.Mount); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, h.Mount); err != nil {
		t.Fatal(err)
	}
	h.WaitHealth(storagepb.Volume_HEALTHY)
	if _, err := h.API.GetScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope}); err != nil {
		t.Error(err)
	}
}

func TestNotAMountPoint(t *testing.T) {
	cfg := storage.Config{Name: "s", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "v", Backend: storagetest.VFS, MountPath: t.TempDir(),
	}}}
	h := &storagetest.Host{TB: t, Config: cfg}
	p, err := storage.New(h.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	wait.Until(t, "the reason", func() bool {
		return strings.Contains(p.Volumes()[0].Message, "not a mount point")
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(cfg.Volumes[0].MountPath); len(left) > 0 {
		t.Errorf("written: %v", left)
	}
}
