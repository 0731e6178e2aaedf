package registry_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/registry/remote"
)

// image is a small image of random content.
func image(t *testing.T, arch string) v1.Image {
	t.Helper()
	img, err := random.Image(4096, 2)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", arch
	c.Config.Labels = map[string]string{"made-for": arch}
	img, err = mutate.ConfigFile(img, c)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// write makes an OCI layout as tools/mkimage does.
func write(t *testing.T, dir string, add func(layout.Path, layout.Option) error, name string) {
	t.Helper()
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := add(p, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) (*registry.Registry, remote.Registry) {
	t.Helper()
	r, host := registrytest.Serve(t, dir)
	return r, remote.Registry{Host: host, PlainHTTP: true}
}

func reach(t *testing.T, r remote.Registry) *remote.Client {
	t.Helper()
	c, err := remote.Open(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func scan(t *testing.T, r remote.Registry) []remote.Image {
	t.Helper()
	c := reach(t, r)
	repositories, err := c.Repositories(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []remote.Image
	for _, repository := range repositories {
		tags, err := c.Tags(t.Context(), repository)
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range tags {
			found, err := c.Inspect(t.Context(), repository+":"+tag.Name)
			if err != nil {
				t.Errorf("%s:%s: %v", repository, tag.Name, err)
				continue
			}
			if d, err := c.Digest(t.Context(), repository+":"+tag.Name); err != nil || d != found.Digest {
				t.Errorf("%s:%s is %s, and HEAD says %q, %v", repository, tag.Name, found.Digest, d, err)
			}
			all = append(all, found.Images...)
		}
	}
	return all
}

func TestImportedImagesAreFound(t *testing.T) {
	layouts, dir := t.TempDir(), t.TempDir()
	amd, arm := image(t, "amd64"), image(t, "arm64")
	write(t, filepath.Join(layouts, "one"), func(p layout.Path, o layout.Option) error { return p.AppendImage(amd, o) }, "one:1")
	both := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: amd, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	write(t, filepath.Join(layouts, "two"), func(p layout.Path, o layout.Option) error { return p.AppendIndex(both, o) }, "team/two:latest")

	r, from := open(t, dir)
	for range 2 { // the second time everything is there
		names, err := r.ImportAll(t.Context(), layouts)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"one:1", "team/two:latest"}, names); d != "" {
			t.Error(d)
		}
	}
	want := []remote.Image{
		{Name: "one:1", Architecture: "amd64", Digest: digest(t, amd), Labels: map[string]string{"made-for": "amd64"}},
		{Name: "team/two:latest", Architecture: "amd64", Digest: digest(t, amd), Labels: map[string]string{"made-for": "amd64"}},
		{Name: "team/two:latest", Architecture: "arm64", Digest: digest(t, arm), Labels: map[string]string{"made-for": "arm64"}},
	}
	got := scan(t, from)
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(remote.Image{}, "Size", "Layers")); d != "" {
		t.Error(d)
	}
	for _, img := range got {
		if img.Size < 2*4096 {
			t.Errorf("%s has size %d, want at least its layers'", img.Name, img.Size)
		}
	}
}

func TestPortAndImagesStayOverARestart(t *testing.T) {
	layouts, dir := t.TempDir(), t.TempDir()
	img := image(t, "amd64")
	write(t, filepath.Join(layouts, "kept"), func(p layout.Path, o layout.Option) error { return p.AppendImage(img, o) }, "kept:1")
	var hosts []string
	for _, life := range []string{"first", "second"} {
		t.Run(life, func(t *testing.T) {
			r, from := open(t, dir)
			hosts = append(hosts, from.Host)
			if life == "first" {
				if _, err := r.ImportAll(t.Context(), layouts); err != nil {
					t.Fatal(err)
				}
			}
			found, err := reach(t, from).Inspect(t.Context(), "kept:1")
			if err != nil || len(found.Images) != 1 || found.Images[0].Digest != digest(t, img) {
				t.Errorf("kept:1 is %v (%v)", found, err)
			}
		})
	}
	if len(slices.Compact(hosts)) != 1 {
		t.Errorf("the address changed: %q", hosts)
	}
}

func TestAPortInUseIsSaid(t *testing.T) {
	dir := t.TempDir()
	l, err := registry.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := registry.Listen(dir); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("error is %v, want failed precondition", err)
	}
}

func TestTheNetworkOnlyReads(t *testing.T) {
	_, from := open(t, t.TempDir())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+from.Host+"/v2/one/blobs/uploads/", bytes.NewReader(nil))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s, want 405", method, res.Status)
		}
	}
}

func TestWhatCannotBeReadHasAClass(t *testing.T) {
	_, from := open(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for name, tc := range map[string]struct {
		ask func() error
		is  func(error) bool
	}{
		"unknown image":      {func() error { _, err := reach(t, from).Inspect(ctx, "none:1"); return err }, errdefs.IsNotFound},
		"unknown repository": {func() error { _, err := reach(t, from).Tags(ctx, "none"); return err }, errdefs.IsNotFound},
		"path upwards":       {func() error { _, err := reach(t, from).Inspect(ctx, "../x:1"); return err }, errdefs.IsInvalidArgument},
		"no tag":             {func() error { _, err := reach(t, from).Inspect(ctx, "one"); return err }, errdefs.IsInvalidArgument},
		"bad digest":         {func() error { _, err := reach(t, from).Inspect(ctx, "one@sha256:12"); return err }, errdefs.IsInvalidArgument},
		"bad host": {func() error {
			_, err := remote.Open(remote.Registry{Host: "a b"})
			return err
		}, errdefs.IsInvalidArgument},
		"nobody there": {func() error {
			_, err := reach(t, remote.Registry{Host: "127.0.0.1:1", PlainHTTP: true}).Repositories(ctx)
			return err
		}, errdefs.IsUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.ask(); !tc.is(err) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestALayoutWithoutNamesIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, func(p layout.Path, _ layout.Option) error { return p.AppendImage(image(t, "amd64")) }, "")
	r, _ := open(t, t.TempDir())
	if _, err := r.Import(t.Context(), dir); !errdefs.IsInvalidArgument(err) {
		t.Errorf("error is %v, want invalid argument", err)
	}
}

func digest(t *testing.T, img v1.Image) string {
	t.Helper()
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// Other accounts of the machine reach the port, too.
func TestReadersShowThePassword(t *testing.T) {
	dir := t.TempDir()
	r, at := open(t, dir)
	password, err := registry.ReaderPassword(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := registry.ReaderPassword(dir); err != nil || again != password || len(password) < 20 {
		t.Errorf("passwords %q and %q, %v", password, again, err)
	}
	r.Require(password)
	for name, c := range map[string]struct {
		as   remote.Registry
		want bool
	}{
		"nobody":             {at, false},
		"a wrong password":   {remote.Registry{Host: at.Host, PlainHTTP: true, Username: registry.ReaderName, Password: "wrong"}, false},
		"another name":       {remote.Registry{Host: at.Host, PlainHTTP: true, Username: "root", Password: password}, false},
		"the right password": {remote.Registry{Host: at.Host, PlainHTTP: true, Username: registry.ReaderName, Password: password}, true},
	} {
		_, err := reach(t, c.as).Repositories(t.Context())
		if (err == nil) != c.want || !c.want && !errdefs.IsUnauthorized(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No one registers the address at which a cloud keeps a machine's credentials.
func TestNoMetadata(t *testing.T) {
	_, err := reach(t, remote.Registry{Host: "169.254.169.254", PlainHTTP: true}).Repositories(t.Context())
	if err == nil || !strings.Contains(err.Error(), "of a link") {
		t.Errorf("a link-local registry: %v", err)
	}
}
