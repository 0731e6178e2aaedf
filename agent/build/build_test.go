package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/vishvananda/netns"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/build/builder"
	"github.com/berthhq/berth/agent/runtime/runtimetest"
)

// variable makes a child of the test binary a builder.
const variable = "BERTH_TEST_BUILDER"

func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		os.Exit(builder.Main(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// site is a machine with a registry and a sandbox.
type site struct {
	*build.Builders
	cfg      build.Config
	registry *runtimetest.Registry
	base     string // pinned
	cgroup   string
	netns    string
}

const memory, pids = 384 << 20, 200

// plain is the way to registries without TLS.
var plain = build.Way{PlainHTTP: true}

func newSite(t testing.TB) *site { return newSiteWith(t, memory, pids) }

// newSiteWith returns a machine whose sandbox has limits.
func newSiteWith(t testing.TB, memory, pids int) *site {
	t.Helper()
	tools := runtimetest.Build(t)
	s := &site{registry: runtimetest.NewRegistry(t)}
	reference, digest := s.registry.Push(t, "base/prog", tools.Prog, v1.Config{})
	s.base = strings.TrimSuffix(reference, ":latest") + "@" + digest
	s.cgroup = "/berth-test-build/" + strings.ToLower(strings.NewReplacer("/", "-").Replace(t.Name())) + strconv.Itoa(os.Getpid())
	makeCgroup(t, s.cgroup, memory, pids)
	s.netns = makeNetNS(t)
	s.cfg = build.Config{Runc: tools.Runc, Dir: filepath.Join(t.TempDir(), "caches")}
	s.program(t, "")
	return s
}

// program makes the test binary the builder, with a variable in its environment.
func (s *site) program(t testing.TB, environment string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.cfg.Program = filepath.Join(t.TempDir(), "builder")
	if err := os.WriteFile(s.cfg.Program, []byte("#!/bin/sh\n"+environment+" "+variable+"=1 exec "+self+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Builders = build.New(s.cfg)
}

// makeCgroup creates a cgroup with limits in all hierarchies.
func makeCgroup(t testing.TB, path string, memory, pids int) {
	t.Helper()
	roots, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil {
		roots = []string{"/sys/fs/cgroup/cgroup.procs"}
	}
	limits := map[string]string{
		"memory.limit_in_bytes": fmt.Sprint(memory), "memory.max": fmt.Sprint(memory), "memory.swap.max": "0", "pids.max": fmt.Sprint(pids),
	}
	for _, root := range roots {
		dir := filepath.Dir(root) + path
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // version 1 does not inherit them
			for _, d := range []string{filepath.Dir(dir), dir} {
				if text, err := os.ReadFile(filepath.Join(filepath.Dir(root), file)); err == nil {
					_ = os.WriteFile(filepath.Join(d, file), text, 0)
				}
			}
		}
		for file, value := range limits {
			at := filepath.Join(dir, file)
			if _, err := os.Stat(at); err != nil {
				continue
			}
			if err := os.WriteFile(at, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// makeNetNS creates a network namespace with only loopback.
func makeNetNS(t testing.TB) string {
	t.Helper()
	named := "berth-build-" + strconv.Itoa(os.Getpid()) + strconv.FormatInt(time.Now().UnixNano()%1e6, 10)
	done := make(chan error, 1)
	go func() { // the thread ends with the goroutine, because it is in another namespace
		lockThread()
		ns, err := netns.NewNamed(named)
		if err == nil {
			err = ns.Close()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	t.Cleanup(func() { _ = netns.DeleteNamed(named) })
	return "/run/netns/" + named
}

// request is a build of a Dockerfile whose base image is called base.
func (s *site) request(dockerfile string) build.Request {
	return build.Request{
		Dockerfile: dockerfile, NetNS: s.netns, Cgroup: s.cgroup, Epoch: 1577836800, ResolvConf: "nameserver 192.0.2.1\n",
		Images:     map[string]string{"base": s.base},
		Registries: []build.Registry{{Way: plain, Host: s.registry.Host}},
		Output:     build.Repository{Way: plain, Name: s.registry.Host + "/users/u/env", MountFrom: "base/prog"},
	}
}

// log collects the output of a build.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) add(e build.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(e.Log)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (s *site) build(t testing.TB, project string, r build.Request) (*build.Result, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	l := &log{}
	done, err := s.Build(ctx, project, r, l.add)
	if left, _ := filepath.Glob("/sys/fs/cgroup/*" + s.cgroup + "/buildkit"); len(left) > 0 {
		t.Errorf("cgroups of steps are left: %v", left)
	}
	return done, l.String(), err
}

func (s *site) must(t testing.TB, project string, r build.Request) (*build.Result, string) {
	t.Helper()
	done, text, err := s.build(t, project, r)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return done, text
}

// image reads an image from the registry by its digest.
func (s *site) image(t *testing.T, r build.Request, digest string) v1.Image {
	t.Helper()
	ref, err := name.ParseReference(r.Output.Name+"@"+digest, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// files returns the contents of the files that the layers of an image have above its first one.
func files(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	out := map[string]string{}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers[1:] {
		in, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for archive := tar.NewReader(in); ; {
			h, err := archive.Next()
			if err != nil {
				break
			}
			var b bytes.Buffer
			_, _ = b.ReadFrom(archive)
			out[h.Name] = b.String()
		}
		in.Close()
	}
	return out
}

func archive(t testing.TB, texts map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range texts {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg, ModTime: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const simple = "FROM base\nENV A=b\nCOPY note /etc/note\nRUN [\"/bin/prog\", \"write\", \"/etc/made\", \"by a step\"]\nUSER 1000\n"

// A build makes an image, a second build of the same input runs no step, and a build without a cache makes
// the same image.
func TestBuildsAreCachedAndReproducible(t *testing.T) {
	s := newSite(t)
	r := s.request(simple)
	r.Context = archive(t, map[string]string{"note": "from the context"})
	first, text := s.must(t, "one", r)
	if first.Steps != 2 || first.Cached != 0 || first.LayerBytes == 0 || first.Sent == 0 {
		t.Errorf("the first build: %+v\n%s", first, text)
	}
	img := s.image(t, r, first.Digest)
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, img); got["etc/note"] != "from the context" || got["etc/made"] != "by a step" || cfg.Config.User != "1000" || !strings.Contains(strings.Join(cfg.Config.Env, " "), "A=b") {
		t.Errorf("the image has %v and %+v", got, cfg.Config)
	}
	again, text := s.must(t, "one", r)
	if again.Digest != first.Digest || again.Cached != 2 || again.Sent != 0 {
		t.Errorf("the second build: %+v\n%s", again, text)
	}
	r.NoCache = true
	r.Context = archive(t, map[string]string{"note": "from the context"})
	for _, project := range []string{"one", "two"} {
		if fresh, text := s.must(t, project, r); fresh.Digest != first.Digest || fresh.Cached != 0 {
			t.Errorf("a build without a cache in project %s: %+v, first %+v\n%s", project, fresh, first, text)
		}
	}
}

// A step that fails is named with its output.
func TestFailedStep(t *testing.T) {
	s := newSite(t)
	_, text, err := s.build(t, "one", s.request("FROM base\nRUN [\"/bin/prog\", \"print\", \"hello\"]\nRUN [\"/bin/prog\", \"exit\", \"3\"]\n"))
	var failed *build.Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Step, "RUN") || !strings.Contains(failed.Message, "exit code: 3") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(text, "[hello]") {
		t.Errorf("the output lacks that of the first step:\n%s", text)
	}
}

// A machine without the project's cache takes the results of steps from the registry.
func TestCacheInRegistry(t *testing.T) {
	s := newSite(t)
	r := s.request(simple)
	r.Context = archive(t, map[string]string{"note": "from the context"})
	r.Cache = build.Cache{Repository: build.Repository{Way: plain, Name: s.registry.Host + "/cache/one"}, Export: "a"}
	first, _ := s.must(t, "one", r)
	s.cfg.Dir = filepath.Join(t.TempDir(), "other")
	s.Builders = build.New(s.cfg)
	r.Cache.Import = []string{"missing", "a"}
	second, text := s.must(t, "one", r)
	if second.Digest != first.Digest || second.Cached != second.Steps {
		t.Errorf("a build on another machine: %+v, first %+v\n%s", second, first, text)
	}
}

// An archive that was sent in parts is unpacked below the context, and a part with other content is refused.
func TestFilesInParts(t *testing.T) {
	s := newSite(t)
	whole := archive(t, map[string]string{"note": "from the parts", "big": strings.Repeat("x", 100_000), "dir/other": "kept"})
	r := s.request("FROM base\nCOPY . /data/\n")
	r.Files = build.Files{Repository: build.Repository{Way: plain, Name: s.registry.Host + "/uploads/u"}}
	for part := range slices.Chunk(whole, 40_000) {
		r.Files.Parts = append(r.Files.Parts, s.blob(t, "uploads/u", part))
	}
	r.Context = archive(t, map[string]string{"note": "from the request"})
	done, _ := s.must(t, "one", r)
	if got := files(t, s.image(t, r, done.Digest)); got["data/note"] != "from the request" || got["data/dir/other"] != "kept" || len(got["data/big"]) != 100_000 {
		t.Errorf("the image has %d files, note is %q", len(got), got["data/note"])
	}
	r.Files.Parts[1] = "sha256:" + strings.Repeat("0", 64)
	if _, text, err := s.build(t, "one", r); err == nil {
		t.Errorf("a part that does not exist is accepted:\n%s", text)
	}
}

// blob pushes a blob and returns its digest.
func (s *site) blob(t *testing.T, repository string, content []byte) string {
	t.Helper()
	repo, err := name.NewRepository(s.registry.Host+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	layer := static.NewLayer(content, types.OCILayer)
	if err := remote.WriteLayer(repo, layer); err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}
