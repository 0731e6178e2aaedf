package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/agent/build"
)

// refused builds a Dockerfile that must fail, and returns the error and the output.
func (s *site) refused(t *testing.T, r build.Request) string {
	t.Helper()
	_, text, err := s.build(t, "one", r)
	if err == nil {
		t.Fatalf("the build succeeds:\n%s\n%s", r.Dockerfile, text)
	}
	return err.Error() + "\n" + text
}

// Steps are in the network of the sandbox. The network of the host, and more rights, are refused.
func TestStepsAreConfined(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // stands for any service of the host, such as the metadata address
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, instruction := range map[string]string{
		"a service of the host":            `RUN ["/bin/prog", "connect", "` + l.Addr().String() + `"]`,
		"the metadata address":             `RUN ["/bin/prog", "connect", "169.254.169.254:80"]`,
		"the network of the host":          `RUN --network=host ["/bin/prog", "connect", "` + l.Addr().String() + `"]`,
		"a step without confinement":       `RUN --security=insecure ["/bin/prog", "id"]`,
		"device nodes":                     `RUN ["/bin/prog", "mknod", "/dev/evil"]`,
		"user namespaces":                  `RUN ["/bin/prog", "unshare"]`,
		"raw sockets":                      `RUN ["/bin/prog", "raw"]`,
		"a file of the host":               `COPY ../../../../../../etc/shadow /shadow`,
		"a URL that the builder reads":     `ADD http://` + l.Addr().String() + `/x /x`,
		"a repository that it reads":       `ADD https://github.com/a/b.git /x`,
		"an image that is not registered":  "COPY --from=" + s.registry.Host + "/other/prog:latest /bin/prog /x",
		"an image of the hub":              "COPY --from=alpine /bin/sh /x",
		"the keys of an SSH agent":         `RUN --mount=type=ssh,required=true ["/bin/prog", "id"]`,
		"a mount of another stage's image": `RUN --mount=type=bind,from=alpine,target=/a ["/bin/prog", "id"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(s.refused(t, s.request("FROM base\n"+instruction+"\n")))
		})
	}
	r := s.request("# syntax=evil.example/frontend\nFROM base\nRUN [\"/bin/prog\", \"id\"]\n")
	if text := s.refused(t, r); !strings.Contains(text, "gateway") {
		t.Errorf("a foreign frontend: %s", text)
	}
}

// The context cannot write outside its directory, and its links lead nowhere else.
func TestHostileContexts(t *testing.T) {
	s := newSite(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	pack := func(list ...tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range list {
			h.Mode = 0o644
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
		return b.Bytes()
	}
	for name, c := range map[string][]byte{
		"a name with ..":      pack(tar.Header{Name: "../../evil", Typeflag: tar.TypeReg}),
		"an absolute name":    pack(tar.Header{Name: "/tmp/evil", Typeflag: tar.TypeReg}),
		"a device":            pack(tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}),
		"a hard link":         pack(tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: secret}),
		"a file below a link": pack(tar.Header{Name: "d", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(secret)}, tar.Header{Name: "d/evil", Typeflag: tar.TypeReg}),
		"a link to a file":    pack(tar.Header{Name: "note", Typeflag: tar.TypeSymlink, Linkname: secret}),
	} {
		r := s.request("FROM base\nCOPY note /note\n")
		r.Context = c
		done, text, err := s.build(t, "one", r)
		if err == nil {
			if got := files(t, s.image(t, r, done.Digest)); strings.Contains(got["note"], "host") {
				t.Errorf("%s: a file of the host is in the image\n%s", name, text)
			}
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(secret), "evil")); err == nil {
			t.Errorf("%s: the context has written outside", name)
		}
	}
}

// A step that takes all memory or all processes ends with its build. The limits of the sandbox apply.
func TestBombs(t *testing.T) {
	s := newSite(t)
	for name, instruction := range map[string]string{
		"memory":    `RUN ["/bin/prog", "alloc", "2000"]`,
		"processes": `RUN ["/bin/prog", "fork", "5000"]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, text, err := s.build(t, "one", s.request("FROM base\n"+instruction+"\n"))
			if name == "memory" && err == nil {
				t.Errorf("a step gets 2000 MiB:\n%s", text)
			}
			if strings.Contains(text, "forked 5000") {
				t.Errorf("a step starts 5000 processes:\n%s", text)
			}
			t.Log(err)
		})
	}
	s.must(t, "one", s.request("FROM base\nRUN [\"/bin/prog\", \"id\"]\n"))
}

// A secret is in a step and nowhere else.
func TestSecretsAreNotInImages(t *testing.T) {
	s := newSite(t)
	r := s.request("FROM base\nRUN --mount=type=secret,id=token [\"/bin/prog\", \"cat\", \"/run/secrets/token\"]\nRUN [\"/bin/prog\", \"write\", \"/made\", \"x\"]\n")
	r.Secrets = map[string]string{"token": "hunter2hunter2"}
	done, text := s.must(t, "one", r)
	if !strings.Contains(text, "hunter2hunter2") {
		t.Errorf("the step did not get the secret:\n%s", text)
	}
	img := s.image(t, r, done.Digest)
	cfg, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files(t, img) {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has the secret", name)
		}
	}
	if strings.Contains(string(cfg)+string(manifest), "hunter2") {
		t.Errorf("the configuration has the secret: %s", cfg)
	}
	r.Secrets = nil
	r.NoCache = true
	if text := s.refused(t, r); !strings.Contains(text, "no such file") {
		t.Errorf("a later build: %s", text)
	}
}

// What one project writes into its caches, another does not see.
func TestCachesBelongToProjects(t *testing.T) {
	s := newSite(t)
	const mount = "RUN --mount=type=cache,id=pip,target=/cache "
	s.must(t, "one", s.request("FROM base\n"+mount+`["/bin/prog", "write", "/cache/wheel", "poisoned"]`+"\n"))
	read := s.request("FROM base\n" + mount + `["/bin/prog", "cat", "/cache/wheel"]` + "\n")
	if _, text := s.must(t, "one", read); !strings.Contains(text, "poisoned") {
		t.Errorf("the project does not see its own cache:\n%s", text)
	}
	if _, text, err := s.build(t, "two", read); err == nil || strings.Contains(text, "poisoned") {
		t.Errorf("another project sees the cache: %v\n%s", err, text)
	}
}

// A cancelled build leaves neither processes nor an image, and the next one works.
func TestCancelledBuild(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := &log{}
	report := func(e build.Event) {
		l.add(e)
		if strings.Contains(l.String(), "RUN") {
			cancel()
		}
	}
	begun := time.Now()
	if _, err := s.Build(ctx, "one", s.request("FROM base\nRUN [\"/bin/prog\", \"sleep\", \"600\"]\n"), report); err == nil {
		t.Fatal("the cancelled build succeeds")
	}
	t.Logf("ended %v after the start", time.Since(begun))
	for _, dir := range []string{"pids", "unified", "."} {
		if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", dir, s.cgroup, "cgroup.procs")); err == nil && len(text) > 0 {
			t.Errorf("processes are left: %s", text)
		}
	}
	s.must(t, "one", s.request(simple[:strings.Index(simple, "COPY")]+"RUN [\"/bin/prog\", \"id\"]\n"))
}
