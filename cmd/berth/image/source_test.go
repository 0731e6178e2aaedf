package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The kind of a description follows from its name, and a directory is packed without .git.
func TestSources(t *testing.T) {
	for name, kind := range map[string]client.Enum{
		"berth.yaml": "RECIPE", "Dockerfile": "DOCKERFILE", "Containerfile": "DOCKERFILE", ".devcontainer/devcontainer.json": "DEVCONTAINER",
		"environment.yml": "ENVIRONMENT", "requirements.txt": "REQUIREMENTS",
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{name: "text of " + name, "a/b": "x", ".git/config": "secret"})
		if err := os.Symlink("b", filepath.Join(dir, "a/link")); err != nil {
			t.Fatal(err)
		}
		var in client.BuildImageInput
		if err := (&buildFlags{}).read(dir, &in); err != nil || in.Kind != kind || in.Text != "text of "+name {
			t.Errorf("%s: %v, %+v", name, err, in)
		}
		if names := unpacked(t, in.Context); !slices.Contains(names, "a/b") || !slices.Contains(names, "a/link") || slices.Contains(names, ".git/config") {
			t.Errorf("%s: the files are %v", name, names)
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"list.txt": "numpy", "docker/tools.Dockerfile": "FROM a"})
	var in client.BuildImageInput
	if err := (&buildFlags{file: "docker/tools.Dockerfile"}).read(dir, &in); err != nil || in.Kind != "DOCKERFILE" {
		t.Errorf("-f: %v, %+v", err, in)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "evil.Dockerfile")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*buildFlags{{}, {file: "list.txt"}, {file: "missing"}, {file: "evil.Dockerfile"}} {
		if err := f.read(dir, &client.BuildImageInput{}); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}

// An archive above the size of a request is sent in parts, and the Dockerfile of a development container is sent with
// the request too.
func TestLargeSources(t *testing.T) {
	dir := t.TempDir()
	noise := make([]byte, maxPacked+1)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{".devcontainer/devcontainer.json": "{}", ".devcontainer/Dockerfile": "FROM a", "data": string(noise)})
	f, in := &buildFlags{}, client.BuildImageInput{}
	if err := f.read(dir, &in); err != nil {
		t.Fatal(err)
	}
	defer f.discard()
	if f.archive == nil {
		t.Fatal("there is no archive to send")
	}
	if names := unpacked(t, in.Context); !slices.Equal(names, []string{".devcontainer/Dockerfile"}) {
		t.Errorf("the request has %v", names)
	}
}

func unpacked(t *testing.T, context string) (names []string) {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(context)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func TestGitAddresses(t *testing.T) {
	for source, want := range map[string]bool{
		"https://example.org/a.git": true, "git@example.org:a": true, "ssh://git@h/a": true, "http://127.0.0.1/a#main:b": true,
		".": false, "Dockerfile": false, "ext::sh -c evil": false, "--upload-pack=evil": false,
	} {
		if got := isGit(source); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
	for _, address := range []string{"https://127.0.0.1:1/a#--upload-pack=evil", "https://127.0.0.1:1/a#main:../.."} {
		if _, err := clone(t.Context(), nil, address, t.TempDir()); err == nil || strings.Contains(err.Error(), "clone") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// With --remote, the address goes to the build, and only https without credentials is accepted.
func TestRemoteGit(t *testing.T) {
	f, in := &buildFlags{remote: true, gitSecret: "t", file: "tools.Dockerfile"}, client.BuildImageInput{}
	if err := f.repository("https://example.org/a.git#main:docker", &in); err != nil || in.Kind != "GIT" || in.Git.Address != "https://example.org/a.git" ||
		in.Git.Ref != "main" || in.Git.Directory != "docker" || in.Git.Secret != "t" || in.Git.File != "tools.Dockerfile" {
		t.Errorf("%v, %+v", err, in.Git)
	}
	for _, source := range []string{".", "git@example.org:a", "ssh://git@h/a", "https://u:p@example.org/a", "http://example.org/a"} {
		if err := f.repository(source, &client.BuildImageInput{}); err == nil {
			t.Errorf("%s is accepted", source)
		}
	}
}
