package lazy_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/containerd/stargz-snapshotter/estargz/zstdchunked"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/lazy"
	"github.com/berthhq/berth/internal/testenv/wait"
)

const childVariable = "BERTH_TEST_LAZY"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := lazy.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// file is an entry of a layer.
type file struct {
	tar.Header
	data []byte
}

func pack(t *testing.T, zs bool, files ...file) (lazy.Layer, []byte) {
	t.Helper()
	var archive, out bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		f.Size = int64(len(f.data))
		if f.Mode == 0 {
			f.Mode = 0o644
		}
		if err := w.WriteHeader(&f.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	to := estargz.NewWriter(&out)
	if zs {
		to = estargz.NewWriterWithCompressor(&out, &zstdchunked.Compressor{CompressionLevel: zstd.SpeedDefault})
	}
	to.ChunkSize = 300_000
	if err := to.AppendTar(&archive); err != nil {
		t.Fatal(err)
	}
	toc, err := to.Close()
	if err != nil {
		t.Fatal(err)
	}
	return lazy.Layer{Digest: digest.FromBytes(out.Bytes()).String(), Size: int64(out.Len()), TOC: toc.String(), Zstd: zs}, out.Bytes()
}

// registry sends parts of layers.
type registry struct {
	*httptest.Server
	layers map[string][]byte
	down   atomic.Bool
	sent   atomic.Int64
	tamper atomic.Int64 // answers whose bytes are changed
}

func newRegistry(t *testing.T) *registry {
	r := &registry{layers: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if user, password, _ := q.BasicAuth(); user != "reader" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		data, ok := r.layers[q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]]
		switch {
		case r.down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.tamper.Add(-1) >= 0 {
			data = bytes.Clone(data)
			for i := range data {
				data[i] ^= 1
			}
		}
		counted := &counter{ResponseWriter: w, n: &r.sent}
		http.ServeContent(counted, q, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(r.Close)
	return r
}

type counter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// mounted starts an image of layers.
func (r *registry) start(t *testing.T, timeout time.Duration, layers ...lazy.Layer) (*lazy.Mount, lazy.Request, error) {
	t.Helper()
	if err := lazy.Check(); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "berth-lazy")
	if err != nil {
		t.Fatal(err)
	}
	req := lazy.Request{
		Dir: filepath.Join(dir, "image"), Store: filepath.Join(dir, "store"), Layers: layers, Timeout: timeout,
		Reference: r.Listener.Addr().String() + "/team/image:1", PlainHTTP: true, Username: "reader", Password: "secret",
	}
	if err := os.MkdirAll(filepath.Join(req.Store, "blobs", "sha256"), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, err := lazy.Start(t.Context(), []string{"/usr/bin/env", childVariable + "=1", self}, req)
	t.Cleanup(func() {
		if err := lazy.Remove(req.Dir); err != nil {
			t.Error(err)
		}
		if m != nil {
			select {
			case <-m.Gone():
			case <-time.After(time.Minute):
				t.Error("the process did not end")
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return m, req, err
}

func (r *registry) mount(t *testing.T, timeout time.Duration, layers ...lazy.Layer) (*lazy.Mount, lazy.Request) {
	t.Helper()
	m, req, err := r.start(t, timeout, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return m, req
}

func status(t *testing.T, m *lazy.Mount) lazy.Status {
	t.Helper()
	s, err := m.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func noise(seed uint64, n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(out)
	return out
}

func dir(name string) file {
	return file{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}}
}
func reg(name string, data []byte) file {
	return file{Header: tar.Header{Typeflag: tar.TypeReg, Name: name}, data: data}
}

// TestFiles compares every property of files that programs see, over two layers.
func TestFiles(t *testing.T) {
	t.Parallel()
	big := noise(1, 2_000_000)
	lower := []file{
		dir("bin/"), dir("usr/"), dir("usr/lib/"), reg("usr/lib/old", []byte("old")), reg("usr/lib/kept", []byte("kept")),
		dir("var/"), reg("var/a", []byte("a")), reg("var/b", []byte("b")),
		{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "lib", Linkname: "usr/lib"}},
	}
	at := time.Unix(1_700_000_000, 0)
	upper := []file{
		{Header: tar.Header{Typeflag: tar.TypeReg, Name: "bin/tool", Mode: 0o4755, Uid: 7, Gid: 8, ModTime: at, Format: tar.FormatPAX,
			PAXRecords: map[string]string{"SCHILY.xattr.user.note": "hello"}}, data: big},
		{Header: tar.Header{Typeflag: tar.TypeLink, Name: "bin/same", Linkname: "bin/tool"}},
		reg("bin/none", nil), reg("usr/lib/.wh.old", nil), reg("var/.wh..wh..opq", nil), reg("var/c", []byte("c")),
		reg("lib/through", []byte("link")),
		{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"}},
	}
	for _, zs := range []bool{false, true} {
		t.Run(fmt.Sprintf("zstd %v", zs), func(t *testing.T) {
			r := newRegistry(t)
			var layers []lazy.Layer
			for _, files := range [][]file{lower, upper} {
				l, data := pack(t, zs, files...)
				r.layers[l.Digest] = data
				layers = append(layers, l)
			}
			m, _ := r.mount(t, time.Minute, layers...)
			var got []string
			err := filepath.WalkDir(m.Root(), func(path string, d os.DirEntry, err error) error {
				got = append(got, strings.TrimPrefix(path, m.Root()))
				return err
			})
			want := ",/bin,/bin/none,/bin/same,/bin/tool,/lib,/pipe,/usr,/usr/lib,/usr/lib/kept,/usr/lib/through,/var,/var/c"
			if all := strings.Join(got, ","); err != nil || all != want {
				t.Errorf("files are %s (%v), want %s", all, err, want)
			}
			tool := filepath.Join(m.Root(), "bin/tool")
			if data, err := os.ReadFile(filepath.Join(m.Root(), "bin/same")); err != nil || !bytes.Equal(data, big) {
				t.Errorf("the linked file has %d bytes (%v)", len(data), err)
			}
			var st unix.Stat_t
			if err := unix.Lstat(tool, &st); err != nil || st.Mode != unix.S_IFREG|0o4755 || st.Uid != 7 || st.Gid != 8 || st.Nlink != 2 || st.Mtim.Sec != at.Unix() {
				t.Errorf("file is %+v (%v)", st, err)
			}
			value := make([]byte, 16)
			if n, err := unix.Getxattr(tool, "user.note", value); err != nil || string(value[:n]) != "hello" {
				t.Errorf("attribute is %q (%v)", value[:max(n, 0)], err)
			}
			part := make([]byte, 10)
			if f, err := os.Open(tool); err != nil {
				t.Error(err)
			} else if _, err := f.ReadAt(part, 299_995); err != nil || !bytes.Equal(part, big[299_995:300_005]) {
				t.Errorf("bytes over the end of a chunk differ (%v)", err)
			} else {
				f.Close()
			}
			if err := os.WriteFile(tool, nil, 0o600); !errors.Is(err, syscall.EROFS) {
				t.Errorf("writing: %v, want a read-only file system", err)
			}
		})
	}
}

// TestOnlyWhatIsRead reads one file of many, and then takes all of them from the content store.
func TestOnlyWhatIsRead(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	var files []file
	for i := range 40 {
		files = append(files, reg(fmt.Sprintf("file-%d", i), noise(uint64(i), 500_000)))
	}
	l, data := pack(t, false, files...)
	r.layers[l.Digest] = data
	m, req := r.mount(t, time.Minute, l)
	read := func(i int) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(m.Root(), fmt.Sprintf("file-%d", i)))
		if err != nil || sha256.Sum256(got) != sha256.Sum256(files[i].data) {
			t.Errorf("file %d has %d bytes (%v)", i, len(got), err)
		}
	}
	read(7)
	sent := r.sent.Load()
	if sent > l.Size/10 {
		t.Errorf("the registry sent %d of %d bytes for one of 40 files", sent, l.Size)
	}
	if s := status(t, m); s.Total != l.Size || s.Local < 500_000 || s.Complete() || s.Fetched != sent || s.Failing != "" {
		t.Errorf("status is %+v after %d bytes", s, sent)
	}
	at := filepath.Join(req.Store, "blobs", "sha256", strings.TrimPrefix(l.Digest, "sha256:"))
	if err := os.WriteFile(at, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r.down.Store(true)
	for i := range files {
		read(i)
	}
	if s := status(t, m); !s.Complete() || s.Fetched != sent {
		t.Errorf("status is %+v, want complete", s)
	}
	if _, err := os.Stat(filepath.Join(req.Dir, "layer-0")); !os.IsNotExist(err) {
		t.Errorf("the cache of a complete layer: %v", err)
	}
	again, err := lazy.Attach(t.Context(), req.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := again.Request(t.Context()); err != nil || back.Password != "secret" || back.Reference != req.Reference {
		t.Errorf("request is %+v (%v)", back, err)
	}
}

func TestTamperedChunkIsRefused(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	good := noise(3, 400_000)
	l, data := pack(t, false, reg("a", good), reg("b", noise(4, 400_000)))
	r.layers[l.Digest] = data
	m, _ := r.mount(t, time.Minute, l)

	r.tamper.Store(1) // a broken connection
	if got, err := os.ReadFile(filepath.Join(m.Root(), "a")); err != nil || !bytes.Equal(got, good) {
		t.Errorf("after one wrong answer: %d bytes, %v", len(got), err)
	}
	r.tamper.Store(1 << 30) // an attacker
	if got, err := os.ReadFile(filepath.Join(m.Root(), "b")); !errors.Is(err, syscall.EIO) {
		t.Errorf("wrong bytes: read %d, %v, want an I/O error", len(got), err)
	}
	if s := status(t, m); s.Refused < 2 || !strings.Contains(s.Failing, "do not have the digest") && !strings.Contains(s.Failing, "wrong bytes") {
		t.Errorf("status is %+v", s)
	}
	r.tamper.Store(0)
	if _, err := os.ReadFile(filepath.Join(m.Root(), "b")); err != nil {
		t.Errorf("after the attack: %v", err)
	}
}

func TestRegistryIsGone(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	l, data := pack(t, false, reg("a", noise(5, 400_000)), reg("b", noise(6, 900_000)))
	r.layers[l.Digest] = data
	m, _ := r.mount(t, time.Second, l)
	if _, err := os.ReadFile(filepath.Join(m.Root(), "a")); err != nil {
		t.Fatal(err)
	}
	r.down.Store(true)
	if _, err := os.ReadFile(filepath.Join(m.Root(), "b")); !errors.Is(err, syscall.EIO) {
		t.Errorf("without the registry: %v, want an I/O error", err)
	}
	if s := status(t, m); !strings.Contains(s.Failing, r.Listener.Addr().String()) || !strings.Contains(s.Failing, "503") {
		t.Errorf("status is %+v", s)
	}
	if _, err := os.ReadFile(filepath.Join(m.Root(), "a")); err != nil {
		t.Errorf("a file that was read before: %v", err)
	}
	r.down.Store(false)
	wait.Until(t, "the registry is used again", func() bool {
		_, err := os.ReadFile(filepath.Join(m.Root(), "b"))
		return err == nil && status(t, m).Failing == ""
	})
}

// TestHostileImages starts images whose index is missing or wrong. None of them is mounted.
func TestHostileImages(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	good, data := pack(t, false, reg("a", noise(8, 100_000)))
	r.layers[good.Digest] = data
	plain := noise(9, 100_000)
	r.layers[digest.FromBytes(plain).String()] = plain
	climbing, data := pack(t, false, file{Header: tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: "../../etc/shadow"}})
	r.layers[climbing.Digest] = data
	bomb := indexOf(t, &estargz.JTOC{Entries: []*estargz.TOCEntry{{Name: strings.Repeat("a", 130<<20), Type: "dir"}}})
	r.layers[bomb.Digest] = bomb.data
	with := func(l lazy.Layer, change func(*lazy.Layer)) lazy.Layer { change(&l); return l }
	for name, l := range map[string]lazy.Layer{
		"wrong digest of the index": with(good, func(l *lazy.Layer) { l.TOC = digest.FromString("other").String() }),
		"wrong format":              with(good, func(l *lazy.Layer) { l.Zstd = true }),
		"no index":                  {Digest: digest.FromBytes(plain).String(), Size: int64(len(plain)), TOC: good.TOC},
		"empty":                     with(good, func(l *lazy.Layer) { l.Size = 10 }),
		"path as digest":            with(good, func(l *lazy.Layer) { l.Digest = "sha256:../../../etc/passwd" }),
		"link out of the image":     climbing,
		"index of 130 MiB":          bomb.Layer,
	} {
		t.Run(name, func(t *testing.T) {
			m, _, err := r.start(t, time.Second, l)
			if m != nil || !errdefs.IsInvalidArgument(err) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

type madeLayer struct {
	lazy.Layer
	data []byte
}

// indexOf returns a layer that has only an index.
func indexOf(t *testing.T, toc *estargz.JTOC) madeLayer {
	t.Helper()
	var out bytes.Buffer
	out.WriteString("no files")
	sum, err := estargz.NewGzipCompressorWithLevel(1).WriteTOCAndFooter(&out, int64(out.Len()), toc, sha256.New())
	if err != nil {
		t.Fatal(err)
	}
	return madeLayer{lazy.Layer{Digest: digest.FromBytes(out.Bytes()).String(), Size: int64(out.Len()), TOC: sum.String()}, out.Bytes()}
}

func TestProcessIsKilled(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	l, data := pack(t, false, reg("a", noise(5, 400_000)))
	r.layers[l.Digest] = data
	m, req := r.mount(t, time.Second, l)
	list, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if at, err := os.Readlink(p); err == nil && at == req.Dir {
			var pid int
			if _, err := fmt.Sscanf(p, "/proc/%d/cwd", &pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case <-m.Gone():
	case <-time.After(time.Minute):
		t.Fatal("the end of the process was not noticed")
	}
	if _, err := os.ReadFile(filepath.Join(m.Root(), "a")); !errors.Is(err, syscall.ENOTCONN) {
		t.Errorf("reading: %v", err)
	}
	if _, err := lazy.Attach(context.Background(), req.Dir); !errdefs.IsNotFound(err) {
		t.Errorf("attach: %v", err)
	}
}

// TestPasswordIsNotOnDisk looks for the password in the directory of an image.
func TestPasswordIsNotOnDisk(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	l, data := pack(t, false, reg("a", noise(5, 400_000)))
	r.layers[l.Digest] = data
	m, req := r.mount(t, time.Second, l)
	if _, err := os.ReadFile(filepath.Join(m.Root(), "a")); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(req.Dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range list {
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if found[e.Name()] = true; st.Mode().Perm()&0o077 != 0 && e.Name() != "root" {
			t.Errorf("%s has the mode %v", e.Name(), st.Mode())
		}
		if text, err := os.ReadFile(filepath.Join(req.Dir, e.Name())); err == nil && bytes.Contains(text, []byte(req.Password)) {
			t.Errorf("%s contains the password", e.Name())
		}
	}
	if !found["layer-0"] || !found["socket"] {
		t.Errorf("the directory has only %v", found)
	}
}
