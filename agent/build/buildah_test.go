package build_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/internal/recipe"
)

// packages is the recipe that the benchmark builds.
var packages = recipe.Recipe{
	Base: "base", Apt: []string{"jq", "tree", "file"},
	Pip: []string{"pandas", "requests", "pydantic", "sqlalchemy", "rich"},
}

// BenchmarkBuildah builds the Dockerfile of a recipe with Berth's builder and with buildah, alternately: without any
// cache, then the unchanged recipe, then the recipe with one more package. Both get their packages from the same
// registries, and their base image from the same registry, which also gets their images. Because the Dockerfile of a
// recipe has a step for each package, buildah also builds one that installs the same packages in one step.
func BenchmarkBuildah(b *testing.B) {
	program, err := exec.LookPath("buildah")
	if err != nil {
		b.Skip("buildah is not installed: apt-get install --no-install-recommends buildah")
	}
	for _, at := range []string{"http://deb.debian.org/debian/dists/bookworm/InRelease", "https://pypi.org/simple/tqdm/"} {
		reachable(b, at)
	}
	s := newSiteWith(b, 4<<30, 2000)
	s.netns = hostNetwork(b) // both build in the network of the machine
	s.base = s.pushPython(b)
	more := packages
	more.Pip = append(slices.Clone(packages.Pip), "tqdm")
	took := map[string][]time.Duration{}
	for b.Loop() {
		s.cfg.Dir = filepath.Join(b.TempDir(), "caches")
		s.Builders = build.New(s.cfg)
		timed := func(what string, r recipe.Recipe) *build.Result {
			begun := time.Now()
			done, _ := s.must(b, "one", s.recipe(b, r))
			took[what] = append(took[what], time.Since(begun))
			return done
		}
		first := timed("cold", packages)
		if again := timed("unchanged", packages); again.Digest != first.Digest || again.Cached != again.Steps {
			b.Errorf("the unchanged recipe: %+v, before %+v", again, first)
		}
		timed("package", more)
		for suffix, r := range map[string]build.Request{"": s.recipe(b, packages), "-one-step": oneStep(s.recipe(b, packages))} {
			other := s.newBuildah(b, program)
			begun := time.Now()
			other.bud(b, r)
			took["buildah"+suffix] = append(took["buildah"+suffix], time.Since(begun))
			other.push(b)
			took["buildah-push"+suffix] = append(took["buildah-push"+suffix], time.Since(begun))
		}
	}
	b.ReportMetric(0, "ns/op") // the sum is meaningless
	for _, what := range slices.Sorted(maps.Keys(took)) {
		b.ReportMetric(median(took[what]), what+"-s")
	}
	for _, other := range []string{"buildah", "buildah-push", "buildah-one-step", "buildah-push-one-step"} {
		b.ReportMetric(median(took["cold"])/median(took[other]), "x-"+other)
	}
	b.ReportMetric(100*median(took["package"])/median(took["cold"]), "package-%")
	b.ReportMetric(100*median(took["unchanged"])/median(took["cold"]), "unchanged-%")
}

// hostNetwork returns a file that names the network namespace of the test.
func hostNetwork(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "net")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	if err := unix.Mount("/proc/self/ns/net", file, "", unix.MS_BIND, ""); err != nil {
		b.Skipf("no mounts: %v", err)
	}
	b.Cleanup(func() { _ = unix.Unmount(file, unix.MNT_DETACH) })
	return file
}

// median returns the median in seconds.
func median(list []time.Duration) float64 {
	slices.Sort(list)
	return list[len(list)/2].Seconds()
}

func reachable(b *testing.B, address string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Skipf("the registries of packages are not reachable: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b.Skipf("the registries of packages are not reachable: %s answers %s", address, answer.Status)
	}
}

// pushPython pushes the starter image with the machine's certificates, and returns its reference.
func (s *site) pushPython(b *testing.B) string {
	b.Helper()
	const dir = "../../build/images/python"
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		b.Skipf("the starter image is not built (make images): %v", err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		b.Fatal(err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		b.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"} {
		if text, err := os.ReadFile(file); err == nil {
			files[file[1:]] = string(text)
		}
	}
	var layer v1.Layer = static.NewLayer(archive(b, files), types.OCIUncompressedLayer)
	if img, err = mutate.AppendLayers(img, layer); err != nil {
		b.Fatal(err)
	}
	ref, err := name.ParseReference(s.registry.Host+"/base/python:latest", name.Insecure)
	if err != nil {
		b.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		b.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		b.Fatal(err)
	}
	return s.registry.Host + "/base/python@" + digest.String()
}

// recipe is a build of a recipe.
func (s *site) recipe(b *testing.B, r recipe.Recipe) build.Request {
	b.Helper()
	source := r.Source()
	out := s.request(source.Dockerfile)
	var err error
	if out.Context, err = recipe.Archive(nil, source.Files); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		b.Fatal(err)
	}
	out.ResolvConf, out.Output.MountFrom = string(text), "base/python"
	return out
}

// oneStep installs all packages of pip in one step.
func oneStep(r build.Request) build.Request {
	lines := strings.SplitAfter(r.Dockerfile, "\n")
	last := ""
	for i, line := range lines {
		if strings.Contains(line, "pip install") {
			last, lines[i] = line, ""
		}
	}
	r.Dockerfile = strings.Join(lines, "") + last
	return r
}

// buildah is a store of buildah that only one round of the benchmark uses.
type buildah struct {
	program, dir, runc string
	base, target       string
}

func (s *site) newBuildah(b *testing.B, program string) *buildah {
	b.Helper()
	out := &buildah{program: program, dir: b.TempDir(), runc: s.cfg.Runc, base: s.base, target: s.registry.Host + "/users/u/beside"}
	b.Cleanup(func() { _ = exec.Command("umount", "-q", filepath.Join(out.dir, "root", "overlay")).Run() })
	return out
}

func (o *buildah) run(b *testing.B, args ...string) {
	b.Helper()
	args = append([]string{"--root", filepath.Join(o.dir, "root"), "--runroot", filepath.Join(o.dir, "run"), "--storage-driver", "overlay"}, args...)
	cmd := exec.CommandContext(b.Context(), o.program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+o.dir, "BUILDAH_RUNTIME="+o.runc)
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("buildah: %v\n%s", err, text)
	}
}

// bud builds the Dockerfile of a request.
func (o *buildah) bud(b *testing.B, r build.Request) {
	b.Helper()
	dir := filepath.Join(o.dir, "context")
	for _, d := range []string{dir, filepath.Join(o.dir, "run")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	unpack := exec.CommandContext(b.Context(), "tar", "-xzf", "-", "-C", dir)
	unpack.Stdin = strings.NewReader(string(r.Context))
	if text, err := unpack.CombinedOutput(); err != nil {
		b.Fatalf("tar: %v\n%s", err, text)
	}
	file := filepath.Join(o.dir, "Dockerfile")
	text := strings.Replace(r.Dockerfile, "FROM base\n", fmt.Sprintf("FROM %s\n", o.base), 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	o.run(b, "bud", "--layers", "--network", "host", "--tls-verify=false", "-f", file, "-t", o.target, dir)
}

// push sends the image to the registry.
func (o *buildah) push(b *testing.B) {
	b.Helper()
	o.run(b, "push", "--tls-verify=false", o.target)
}
