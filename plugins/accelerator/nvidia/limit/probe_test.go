package limit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// built contains the library, the fake driver libraries and the probe.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "limit")
	if err != nil {
		panic(err)
	}
	built = dir
	compile := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%s %v: %v\n%s", name, args, err, out))
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	compile("lib/build.sh", at(Library))
	for name, source := range map[string]string{"libcuda.so.1": "cuda.c", "libnvidia-ml.so.1": "nvml.c", "bystander.so": "bystander.c"} {
		compile("cc", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,"+name, "-o", at(name), "testdata/"+source)
	}
	compile("cc", "-O1", "-o", at("probe"), "testdata/probe.c", at("libcuda.so.1"))
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const (
	first  = "GPU-1b2c3d4e-0000-4000-8000-000000000000"
	second = "GPU-1b2c3d4e-0000-4000-8000-000000000001"
)

// container creates the directory of a container: the library with its files.
func container(t testing.TB, caps ...Cap) string {
	t.Helper()
	for _, pattern := range []string{"lib/*", "testdata/*"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			_, _ = os.Stat(f) // makes the file an input of go test's cache
		}
	}
	dir := t.TempDir()
	raw, err := os.ReadFile(filepath.Join(built, Library))
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, Library)
	if err := os.WriteFile(library, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Apply(&pb.ContainerEdits{}, library, dir, caps); err != nil {
		t.Fatal(err)
	}
	return dir
}

// probe is a running program that executes commands to allocate memory.
type probe struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr *strings.Builder
}

// run starts a probe in a container, or without the library if dir is "".
func run(t testing.TB, dir, how string, preload ...string) *probe {
	t.Helper()
	if dir != "" {
		preload = append(preload, filepath.Join(dir, Library))
	}
	return start(t, exec.Command(filepath.Join(built, "probe"), how), preload...)
}

func start(t testing.TB, cmd *exec.Cmd, preload ...string) *probe {
	t.Helper()
	p := &probe{t: t, cmd: cmd, stderr: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+built, "LD_PRELOAD="+strings.Join(preload, ":"))
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// ask sends a command and returns the response.
func (p *probe) ask(format string, args ...any) string {
	p.t.Helper()
	fmt.Fprintf(p.in, format+"\n", args...)
	if !p.out.Scan() {
		_ = p.cmd.Wait()
		p.t.Fatalf("%s: the probe has ended: %v %s", fmt.Sprintf(format, args...), p.cmd.ProcessState, p.stderr)
	}
	return p.out.Text()
}

func (p *probe) want(want, format string, args ...any) {
	p.t.Helper()
	if got := p.ask(format, args...); got != want {
		p.t.Errorf("%s: %s, want %s\n%s", fmt.Sprintf(format, args...), got, want, p.stderr)
	}
}

// kill sends SIGKILL to the probe and waits for its exit.
func (p *probe) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}
