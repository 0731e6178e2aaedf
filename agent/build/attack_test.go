package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/disk"
	"github.com/berthhq/berth/internal/testenv/wait"
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

// A step that fills the disk ends with an error that names the disk, and the next build works. Other projects have
// disks of their own.
func TestFullDisk(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	disks, probe, err := disk.New(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !probe.Ok {
		t.Skip(probe.Detail)
	}
	s.cfg.Dir, s.cfg.Disks, s.cfg.Disk = filepath.Join(dir, "caches"), disks, 128<<20
	s.Builders = build.New(s.cfg)
	t.Cleanup(func() {
		for _, project := range []string{"one", "two"} {
			if err := disks.Remove(filepath.Join(s.cfg.Dir, project)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		if text := s.refused(t, s.request("FROM base\nRUN [\"/bin/prog\", \"fill\", \"/big\"]\n")); !strings.Contains(text, "was full") {
			t.Errorf("the error does not name the disk: %s", text)
		}
	}
	r := s.request("FROM base\nCOPY . /x\n")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(archive(t, map[string]string{"zeros": string(make([]byte, 160<<20))})); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r.Context = packed.Bytes()
	if text := s.refused(t, r); !strings.Contains(text, "full") {
		t.Errorf("files above the disk: %s", text)
	}
	for _, project := range []string{"one", "two"} {
		s.must(t, project, s.request("FROM base\nRUN [\"/bin/prog\", \"id\"]\n"))
	}
}

// A builder that is killed in the middle of a step leaves neither processes nor an image, and the next build of the
// project works.
func TestKilledBuilder(t *testing.T) {
	s := newSite(t)
	var once sync.Once
	killed := make(chan []string, 1)
	l := &log{}
	_, err := s.Build(t.Context(), "one", s.request("FROM base\nRUN [\"/bin/prog\", \"write\", \"/early\", \"x\"]\nRUN [\"/bin/prog\", \"sleep\", \"600\"]\n"), func(e build.Event) {
		l.add(e)
		if strings.Contains(l.String(), "sleep") {
			once.Do(func() { killed <- s.killAll(t) })
		}
	})
	if err == nil || len(<-killed) == 0 {
		t.Fatalf("the killed builder succeeds: %v\n%s", err, l)
	}
	t.Log(err)
	if list, err := remote.List(s.repository(t, "users/u/env")); err == nil && len(list) > 0 {
		t.Errorf("the registry has %v", list)
	}
	done, _ := s.must(t, "one", s.request("FROM base\nRUN [\"/bin/prog\", \"write\", \"/early\", \"x\"]\nRUN [\"/bin/prog\", \"id\"]\n"))
	t.Logf("the next build: %+v", done)
	if left := s.processes(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// processes returns the processes of the sandbox, without those of steps.
func (s *site) processes() (pids []string) {
	for _, dir := range []string{"pids", "."} {
		if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", dir, s.cgroup, "cgroup.procs")); err == nil {
			pids = append(pids, strings.Fields(string(text))...)
		}
	}
	return pids
}

// killAll kills the builder.
func (s *site) killAll(t *testing.T) []string {
	pids := s.processes()
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Errorf("kill %s: %v", text, err)
		}
	}
	return pids
}

func (s *site) repository(t *testing.T, path string) name.Repository {
	t.Helper()
	repo, err := name.NewRepository(s.registry.Host+"/"+path, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// The builder reaches a registry with its own certificates, and only with them. The credentials of the registry go to
// no other site, which the registry can name as its token server.
func TestRegistriesOfTheirOwn(t *testing.T) {
	s := newSite(t)
	var asked atomic.Int64
	thief := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "" || r.Method == http.MethodPost {
			asked.Add(1)
		}
		_, _ = w.Write([]byte(`{"token":"x"}`))
	}))
	defer thief.Close()
	to, err := url.Parse("http://" + s.registry.Host)
	if err != nil {
		t.Fatal(err)
	}
	var hostile atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(to)
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hostile.Load() {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+strings.Replace(thief.URL, "127.0.0.1", "localhost", 1)+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer tls.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw})
	r := s.request("FROM base\nRUN [\"/bin/prog\", \"id\"]\n")
	host := tls.Listener.Addr().String()
	r.Images["base"] = host + strings.TrimPrefix(s.base, s.registry.Host)
	r.Registries = []build.Registry{{Host: host, Username: "u", Password: "hunter2"}}
	if text := s.refused(t, r); !strings.Contains(text, "certificate") {
		t.Errorf("without the certificate: %s", text)
	}
	r.Registries[0].Certificates = string(own)
	s.must(t, "one", r)
	r.Registries[0].Proxy = "http://127.0.0.1:1"
	if _, text, err := s.build(t, "two", r); err == nil {
		t.Errorf("the proxy of the registry is not used:\n%s", text)
	}
	r.Registries[0].Proxy = ""
	r.Registries[0].Certificates += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: thief.Certificate().Raw}))
	hostile.Store(true)
	if text := s.refused(t, r); asked.Load() > 0 || !strings.Contains(text, "not on its site") {
		t.Errorf("a token server on another site was asked %d times with credentials: %s", asked.Load(), text)
	}
}

// A builder whose agent is killed in the middle of a step ends by itself, together with the step.
func TestKilledAgent(t *testing.T) {
	s := newSite(t)
	r := s.request("FROM base\nRUN [\"/bin/prog\", \"sleep\", \"600\"]\n")
	r.Root, r.Runc = filepath.Join(t.TempDir(), "cache"), s.cfg.Runc
	if err := os.MkdirAll(filepath.Join(r.Root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.cfg.Program)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(r.Root, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(r); err != nil {
		t.Fatal(err)
	}
	steps := func() (n int) {
		found, _ := filepath.Glob("/sys/fs/cgroup/*" + s.cgroup + "/buildkit/*/cgroup.procs")
		for _, file := range found {
			text, _ := os.ReadFile(file)
			n += len(strings.Fields(string(text)))
		}
		return n
	}
	early := make(chan string, 1)
	go func() {
		lines := json.NewDecoder(out)
		for {
			var e build.Event
			if err := lines.Decode(&e); err != nil || e.Error != nil {
				early <- fmt.Sprintf("%v, %+v", err, e)
				return
			}
		}
	}()
	wait.Until(t, "the step runs", func() bool {
		select {
		case text := <-early:
			t.Fatalf("the build ends early: %s", text)
		default:
		}
		return steps() > 0
	})
	_, _ = in.Close(), out.Close() // as the kernel does for a process that is killed
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		t.Fatal("the builder still runs")
	}
	wait.Until(t, "the step has ended", func() bool { return steps() == 0 })
	if list, err := remote.List(s.repository(t, "users/u/env")); err == nil && len(list) > 0 {
		t.Errorf("the registry has %v", list)
	}
	for _, dir := range []string{"/sys/fs/cgroup/*" + s.cgroup + "/buildkit/*", "/sys/fs/cgroup/*" + s.cgroup + "/buildkit"} {
		left, _ := filepath.Glob(dir)
		for _, d := range left {
			_ = os.Remove(d)
		}
	}
}
