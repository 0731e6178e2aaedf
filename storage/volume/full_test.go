package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/internal/simulator/image"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// newSmall returns a host on a file system of a few megabytes.
func newSmall(t *testing.T, size string) *storagetest.Host {
	t.Helper()
	mount := t.TempDir()
	err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size="+size)
	if errors.Is(err, unix.EPERM) {
		t.Skip("may not mount")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	return storagetest.NewOn(t, mount)
}

// fullUpload runs an upload that finds no space in its middle, and continues when there is space
// again.
func fullUpload(h *storagetest.Host, t *testing.T, fill, free func(), limit float64) {
	t.Helper()
	data := storagetest.Random(3 << 20)
	tk := h.Ticket("upload", "up", int64(len(data)))
	at := h.Begin(tk, int64(len(data)))
	if resp := h.Tus("PATCH", at, tk, bytes.NewReader(data[:1<<20]), "Upload-Offset", "0"); resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	fill()
	resp := h.Tus("PATCH", at, tk, bytes.NewReader(data[1<<20:]), "Upload-Offset", strconv.Itoa(1<<20))
	code, _, named := h.Problem(resp)
	if resp.StatusCode != 507 || code != "RESOURCE_EXHAUSTED" || named != limit {
		t.Errorf("without room: %s %s, limit %v, want %v", resp.Status, code, named, limit)
	}
	if _, err := os.Stat(filepath.Join(h.Path, "up")); !os.IsNotExist(err) {
		t.Errorf("a part is visible: %v", err)
	}
	from := h.Offset(at, tk)
	if from < 1<<20 || from >= int64(len(data)) {
		t.Fatalf("offset %d", from)
	}
	free()
	if resp := h.Tus("PATCH", at, tk, bytes.NewReader(data[from:]), "Upload-Offset", strconv.FormatInt(from, 10)); resp.StatusCode != 204 {
		t.Fatalf("with room: %s", resp.Status)
	}
	h.WantFile("up", data)
}

func TestDiskFull(t *testing.T) {
	h := newSmall(t, "8m")
	ballast := filepath.Join(h.Mount, "ballast")
	fill := func() {
		t.Helper()
		f, err := os.Create(ballast)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 64<<10))
		}
	}
	free := func() {
		t.Helper()
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	fullUpload(h, t, fill, free, 0)

	// Copies and clones that do not fit leave nothing at the target.
	if resp := h.Tus("POST", "/uploads", h.Ticket("upload", "large", 16<<20), nil, "Upload-Length", strconv.Itoa(16<<20)); resp.StatusCode != 507 {
		t.Errorf("larger than the disk: %s", resp.Status)
	}
	m := &storagetest.Moving{Host: h, To: uuid.NewString()}
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: m.To}); err != nil {
		t.Fatal(err)
	}
	fill()
	results, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("up", "copy")})
	if err == nil && len(results) == 1 {
		err = results[0].Err()
	}
	storagetest.WantCode(t, err, codes.ResourceExhausted)
	to := m.Fresh()
	_, err = m.Clone(to)
	storagetest.WantCode(t, err, codes.ResourceExhausted)
	for _, path := range []string{filepath.Join(h.Path, "copy"), m.At(to)} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	storagetest.WantCode(t, h.MoveFile("up", "moved", false), codes.OK) // a rename needs no room
	storagetest.WantCode(t, h.DeleteFiles(false, "moved")[0].Err(), codes.OK)
	free()
	if _, err := m.Clone(to); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(tree(t, m.Path), tree(t, m.At(to))); d != "" {
		t.Error(d)
	}
}

// btrfsMount returns the path of an empty btrfs, if the machine supports it.
func btrfsMount(t *testing.T) string {
	t.Helper()
	i, err := image.Make(t.Context())
	if errdefs.IsUnavailable(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i.Mount
}

// A product enforces a limit itself and refuses bytes in the middle of an upload.
func TestLimitReachedInTheMiddle(t *testing.T) {
	mount := btrfsMount(t)
	btrfs := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("btrfs", args...).CombinedOutput(); err != nil {
			t.Fatalf("btrfs %v: %v: %s", args, err, out)
		}
	}
	if _, err := exec.LookPath("btrfs"); err != nil {
		t.Skip(err)
	}
	btrfs("quota", "enable", mount)
	h := &storagetest.Host{TB: t, Mount: mount, Signer: storagetest.NewSigner(t)}
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: storagetest.VFS, MountPath: mount, OptionsJSON: `{"usage_max_age_s": 0}`,
	}}}
	h.Start()
	t.Cleanup(func() { h.Stop() })
	h.Ref = &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}
	scope := filepath.Join(mount, strings.ReplaceAll(h.Ref.Scope, "-", ""))
	btrfs("subvolume", "create", scope)
	limit := int64(8 << 20)
	set := func(n int64) {
		t.Helper()
		if _, err := h.API.SetScopeLimit(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope, LimitBytes: &n}); err != nil {
			t.Fatal(err)
		}
		btrfs("qgroup", "limit", fmt.Sprint(n), scope)
	}
	if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: h.Ref.Scope}); err != nil {
		t.Fatal(err)
	}
	set(limit)
	f, err := h.API.CreateFolder(h.Ctx(), h.Ref)
	if err != nil {
		t.Fatal(err)
	}
	h.Path = filepath.Join(mount, f.Path)
	fullUpload(h, t, func() { // a container fills the scope
		f, err := os.Create(filepath.Join(h.Path, "ballast"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil {
			if _, err = f.Write(storagetest.Random(64 << 10)); err == nil {
				err = f.Sync()
			}
		}
		if !errors.Is(err, unix.EDQUOT) {
			t.Fatal(err)
		}
	}, func() { set(32 << 20) }, float64(limit))
}

// Special files (not a file, directory or link) are never opened and not copied.
func TestSpecialFilesAreNotTouched(t *testing.T) {
	h := storagetest.New(t)
	socket := filepath.Join(h.Path, "dir/device")
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	// No driver uses the device number, so opening it fails with a distinct error.
	if err := unix.Mknod(socket, unix.S_IFCHR|0o666, int(unix.Mkdev(240, 250))); errors.Is(err, unix.EPERM) {
		t.Skip("may not make devices")
	} else if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(h.Path, "dir/pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	h.Write("dir/f", "text")
	results, err := h.Transfer(false, &storagepb.TransferRequest{From: h.Ref, To: h.Ref, Files: storagetest.Pairs("dir/device", "device", "dir/pipe", "pipe", "dir", "copy")})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		storagetest.WantCode(t, r.Err(), map[string]codes.Code{"dir/device": codes.InvalidArgument}[r.Path])
	}
	var got []string
	entries, err := os.ReadDir(filepath.Join(h.Path, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if d := cmp.Diff([]string{"f", "pipe"}, got); d != "" {
		t.Error(d)
	}
	for _, r := range h.DeleteFiles(true, "dir", "copy", "pipe") {
		storagetest.WantCode(t, r.Err(), codes.OK)
	}
}
