package recipe_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/internal/recipe"
)

const whole = `
base: python:1
env: {LANG: C.UTF-8, PRICE: "5$"}
apt: [git, build-essential]
conda: [scipy=1.14]
pip: ["numpy==2.1", "torch>=2"]
npm: ["typescript@5"]
files: {/etc/motd: "hello\n", "/opt/with space": x}
run:
  - ldconfig
  - |
    set -x
    make
user: work
apps: [{name: docs, port: 8000, command: [python3, -m, http.server]}]
`

func TestRecipes(t *testing.T) {
	r, err := recipe.Parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Source()
	for _, want := range []string{
		"FROM python:1\n", "ENV LANG=\"C.UTF-8\"\n", `ENV PRICE="5\$"`, "USER root\n", "apt-get install -y --no-install-recommends 'git' 'build-essential'",
		"id=apt-archives", "'scipy=1.14'", "source=berth/pip/1", "'typescript@5'", `COPY ["berth/files/0", "/etc/motd"]`, `"/opt/with space"]`,
		"RUN ldconfig\n", "source=berth/run/1,target=/run/berth-script", `LABEL com.berthhq.apps="[{\"name\":\"docs\"`,
	} {
		if !strings.Contains(s.Dockerfile, want) {
			t.Errorf("the Dockerfile lacks %q:\n%s", want, s.Dockerfile)
		}
	}
	if !strings.HasSuffix(s.Dockerfile, "USER work\n") || s.Files["berth/files/0"] != "hello\n" || !strings.Contains(s.Files["berth/run/1"], "make") || s.Files["berth/pip/0"] != "numpy==2.1\n" || s.Files["berth/pip/1"] != "numpy==2.1\ntorch>=2\n" {
		t.Errorf("%s\n%v", s.Dockerfile, s.Files)
	}
	if again := r.Source(); again.Dockerfile != s.Dockerfile {
		t.Errorf("the second time:\n%s", cmp.Diff(s.Dockerfile, again.Dockerfile))
	}
	images, err := recipe.NamedImages(s.Dockerfile, nil)
	if err != nil || images.Base != "python:1" || len(images.All) != 1 {
		t.Errorf("%+v, %v", images, err)
	}
}

// A part of a recipe cannot become an option, another instruction or another command.
func TestMalformedRecipes(t *testing.T) {
	for _, text := range []string{
		"apt: [git]", "base: 'a b'", "base: \"a\\nRUN evil\"", "base: p\napt: ['--evil']", "base: p\npip: ['-r /etc/passwd']", "base: p\nnpm: [\"a\\nb\"]",
		"base: p\napt: ['a\\'; evil']", "base: p\nenv: {'A B': x}", "base: p\nenv: {A: \"x\\nRUN evil\"}", "base: p\nfiles: {relative: x}", "base: p\nfiles: {/a/../../b: x}",
		"base: p\nuser: \"a\\nRUN evil\"", "base: p\nrun: ['']", "base: p\nunknown: x", "base: p\napps: [{name: A, port: 1}]", "base: p\napps: [{name: a, port: 0}]", "[", "base: $HOME",
	} {
		if r, err := recipe.Parse(text); err == nil {
			t.Errorf("%q is accepted:\n%s", text, r.Source().Dockerfile)
		}
	}
}

func TestSources(t *testing.T) {
	context := pack(t, map[string]string{".devcontainer/Dockerfile": "# syntax=evil/frontend\nFROM python:1 AS dev\nRUN true\nFROM dev AS last\n"})
	for name, c := range map[string]struct {
		kind             recipe.Kind
		text, base, want string
	}{
		"requirements":     {recipe.KindRequirements, "numpy\n-e .\n", "python:1", "FROM python:1\nRUN --mount=type=cache,id=pip"},
		"environment":      {recipe.KindEnvironment, "dependencies: [scipy]\n", "conda:1", "env update -n base -f /run/berth-environment.yml"},
		"dockerfile":       {recipe.KindDockerfile, "# syntax=docker/dockerfile:1\nFROM a\n", "", "#\nFROM a\n"},
		"a comment":        {recipe.KindDockerfile, "FROM a\n# syntax=b\n", "", "FROM a\n# syntax=b\n"},
		"an image":         {recipe.KindDevcontainer, "{\n// comment\n\"image\": \"python:1\", /* x */ \"remoteUser\": \"work\", \"postCreateCommand\": \"pip install x\", \"customizations\": {\"a\": [1,],},\n}", "", "FROM python:1\nUSER root\nRUN pip install x\nUSER work\n"},
		"a Dockerfile":     {recipe.KindDevcontainer, `{"build": {"dockerfile": "Dockerfile", "target": "dev"}, "containerEnv": {"A": "http://b"}}`, "", "FROM dev\nENV A=\"http://b\"\n"},
		"a list of words":  {recipe.KindDevcontainer, `{"image": "a", "postCreateCommand": ["echo", "it's"]}`, "", `RUN 'echo' 'it'\''s'`},
		"no other program": {recipe.KindDevcontainer, `{"build": {"dockerfile": "Dockerfile"}}`, "", "#\nFROM python:1 AS dev\n"},
	} {
		got, err := recipe.Read(c.kind, c.text, c.base, context)
		if err != nil || !strings.Contains(got.Dockerfile, c.want) {
			t.Errorf("%s: %v\n%s", name, err, got.Dockerfile)
		}
	}
	for name, c := range map[string][2]string{
		"features":       {"devcontainer", `{"image": "a", "features": {"ghcr.io/x": {}}}`},
		"compose":        {"devcontainer", `{"dockerComposeFile": "x.yml"}`},
		"missing file":   {"devcontainer", `{"build": {"dockerfile": "../../etc/passwd"}}`},
		"no base":        {"requirements", "numpy"},
		"empty":          {"dockerfile", "  \n"},
		"unknown":        {"nix", "x"},
		"not JSON":       {"devcontainer", `{"image"`},
		"a long comment": {"devcontainer", "/* " + strings.Repeat("x", 100_000)},
	} {
		if got, err := recipe.Read(recipe.Kind(c[0]), c[1], "", context); err == nil {
			t.Errorf("%s is accepted: %+v", name, got)
		}
	}
}

func TestNamedImages(t *testing.T) {
	const multi = "ARG TAG=1\nARG OTHER\nFROM python:${TAG} AS build\nFROM scratch AS empty\nFROM $OTHER AS o\nCOPY --from=build /a /b\nCOPY --from=0 /a /c\nCOPY --from=tools:2 /a /d\n" +
		"RUN --mount=type=bind,from=mounted:3,target=/x true\nFROM o\n"
	got, err := recipe.NamedImages(multi, map[string]string{"OTHER": "r:9"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recipe.Images{All: []string{"mounted:3", "python:1", "r:9", "tools:2"}, Base: "r:9"}, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "RUN x", "FROM", "FROM $MISSING", "FROM a\nNOT an instruction", strings.Repeat("FROM a\n", 60)} {
		if got, err := recipe.NamedImages(bad, nil); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestArchives(t *testing.T) {
	a, err := recipe.Archive(pack(t, map[string]string{"x": "1"}), map[string]string{"berth/y": "2", "berth/a": "3"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := recipe.Entries(a, func(h *tar.Header, _ io.Reader) error { names = append(names, h.Name); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "berth/a", "berth/y"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := recipe.Archive([]byte("no archive at all, but text that is long enough to be read as one"+strings.Repeat(" ", 600)), map[string]string{"a": "b"}); err == nil {
		t.Error("a text is accepted as an archive")
	}
	var bomb bytes.Buffer
	w := tar.NewWriter(&bomb)
	if err := w.WriteHeader(&tar.Header{Name: "big", Size: recipe.MaxUnpacked + 1, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	for range recipe.MaxUnpacked >> 20 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := recipe.Entries(bomb.Bytes(), func(_ *tar.Header, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }); err == nil {
		t.Error("an archive above the limit is accepted")
	}
}

func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
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

// A package that is added at the end of a list leaves all steps but the last one as they are, and adds few steps.
func TestAddedPackagesChangeOneStep(t *testing.T) {
	var list []string
	before := recipe.Source{}
	for n := range 200 {
		list = append(list, fmt.Sprintf("package-%d", n))
		got, err := recipe.Read(recipe.KindRequirements, strings.Join(list, "\n"), "python:1", nil)
		if err != nil {
			t.Fatal(err)
		}
		steps := strings.Split(strings.TrimSpace(before.Dockerfile), "\n")
		for i, line := range steps[:max(0, len(steps)-1)] {
			file := fmt.Sprintf("berth/pip/%d", i-1)
			if !strings.HasPrefix(got.Dockerfile, strings.Join(steps[:i+1], "\n")+"\n") || i > 0 && got.Files[file] != before.Files[file] {
				t.Fatalf("package %d changes %s", n, line)
			}
		}
		last := fmt.Sprintf("berth/pip/%d", len(got.Files)-1)
		if got.Files[last] != strings.Join(list, "\n")+"\n" {
			t.Fatalf("the last step of %d packages installs %q", n+1, got.Files[last])
		}
		before = got
	}
	if n := len(before.Files); n > 24 {
		t.Errorf("200 packages are installed in %d steps", n)
	}
	for _, text := range []string{"numpy\n-r other.txt\n", "numpy \\\n  --hash=sha256:ab\n", "./wheel.whl\n", "--index-url https://x\nnumpy\n"} {
		got, err := recipe.Read(recipe.KindRequirements, text, "python:1", nil)
		if err != nil || got.Files["berth/requirements.txt"] != text {
			t.Errorf("%q becomes %v, %v", text, got.Files, err)
		}
	}
}
