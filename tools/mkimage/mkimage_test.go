package main

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/berthhq/berth/internal/testenv"
)

func folder(t *testing.T, recipe string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "recipe.yaml"), []byte(recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const good = `{name: tiny, tag: "1", title: Tiny, date: 2026-01-02, suite: bookworm, variant: extract,
env: {PATH: /bin, HOME: /home/work}, workdir: /home/work, cmd: [/bin/sh]}`

func TestRecipesOfTheRepository(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testenv.Root(t), "images", "*", "recipe.yaml"))
	if err != nil || len(dirs) < 2 {
		t.Fatalf("recipes: %q (%v)", dirs, err)
	}
	for _, d := range dirs {
		r, err := read(filepath.Dir(d))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := filepath.Base(filepath.Dir(d)); r.Name != want || r.WorkDir == "" || len(r.Cmd) == 0 || r.Env["PATH"] == "" {
			t.Errorf("recipe %s is %+v", want, r)
		}
	}
}

func TestBadRecipesAreRefused(t *testing.T) {
	for name, recipe := range map[string]string{
		"no name":                                `{tag: "1", suite: bookworm, variant: extract}`,
		"no suite":                               `{name: tiny, tag: "1", variant: extract}`,
		"unknown field":                          strings.Replace(good, "title:", "titel:", 1),
		"no date":                                strings.Replace(good, "2026-01-02", "soon", 1),
		"not yaml":                               "{",
		"lock of an image that installs nothing": strings.TrimSuffix(good, "}") + ", pip: lock.txt}",
		"lock that is missing":                   strings.Replace(strings.TrimSuffix(good, "}")+", pip: lock.txt}", "extract", "minbase", 1),
		"app without a port":                     strings.TrimSuffix(good, "}") + ", apps: [{name: lab}]}",
		"app with a bad name":                    strings.TrimSuffix(good, "}") + ", apps: [{name: My Lab, port: 80}]}",
		"app named twice":                        strings.TrimSuffix(good, "}") + ", apps: [{name: lab, port: 80}, {name: lab, port: 81}]}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(folder(t, recipe)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// rootFile writes a root file system of one directory.
func rootFile(t *testing.T) string {
	t.Helper()
	rootTar := filepath.Join(t.TempDir(), "root.tar")
	f, err := os.Create(rootTar)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := w.WriteHeader(&tar.Header{Name: "./home/work/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 1000}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return rootTar
}

func TestPackTwiceGivesTheSameImage(t *testing.T) {
	r, err := read(folder(t, good))
	if err != nil {
		t.Fatal(err)
	}
	rootTar := rootFile(t)
	var digests []string
	for _, dir := range []string{"first", "second"} {
		img, err := r.pack(rootTar, filepath.Join(t.TempDir(), dir))
		if err != nil {
			t.Fatal(err)
		}
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d.String())
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if want := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC); !c.Created.Equal(want) || !c.History[0].Created.Equal(want) {
			t.Errorf("created at %s, not at %s", c.Created, want)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("digests are %q", digests)
	}
}

func TestPack(t *testing.T) {
	r, err := read(folder(t, strings.TrimSuffix(good, "}")+`,
apps: [{name: lab, title: Lab, port: 8888, command: [lab, "{port}"], environment: {BASE: "{prefix}"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	if _, err := r.pack(rootFile(t), dir); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 || m.Manifests[0].Annotations[refName] != "tiny:1" {
		t.Fatalf("index is %+v (%v)", m, err)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"HOME=/home/work", "PATH=/bin"}, c.Config.Env); d != "" {
		t.Error(d)
	}
	apps := `[{"name":"lab","title":"Lab","port":8888,"command":["lab","{port}"],"environment":{"BASE":"{prefix}"}}]`
	if d := cmp.Diff(apps, c.Config.Labels["com.berthhq.apps"]); d != "" {
		t.Error(d)
	}
	if c.Config.WorkingDir != "/home/work" || len(c.RootFS.DiffIDs) != 1 || c.OS != "linux" {
		t.Errorf("config is %+v", c)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v)", len(layers), err)
	}
	if mt, err := layers[0].MediaType(); err != nil || mt != types.OCILayerZStd {
		t.Errorf("layer is %s (%v)", mt, err)
	}
	u, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if h, err := tar.NewReader(u).Next(); err != nil || h.Uid != 1000 || h.Name != "./home/work/" {
		t.Errorf("first entry is %+v (%v)", h, err)
	}
}

func TestAnImageIsBuiltAgainOnlyWhenItsFolderChanges(t *testing.T) {
	dir, out := folder(t, good), t.TempDir()
	r, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := r.hash()
	if err != nil {
		t.Fatal(err)
	}
	if current(out, hash) {
		t.Error("an empty place is current")
	}
	index := filepath.Join(out, "index.json")
	for _, f := range []string{index, hashFile(out)} {
		if err := os.WriteFile(f, []byte(hash), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(index, old, old); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), dir, out); err != nil { // changes only its time
		t.Fatal(err)
	}
	if i, err := os.Stat(index); err != nil || !i.ModTime().After(old) {
		t.Errorf("index: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "customize.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if changed, err := r.hash(); err != nil || current(out, changed) {
		t.Errorf("still current with a new file (%v)", err)
	}
}
