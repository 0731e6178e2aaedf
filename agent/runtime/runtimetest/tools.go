package runtimetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Tools are the programs that the real runtime needs.
type Tools struct{ Shim, Runc, Runner, Prog string }

// module is the import path of this repository.
const module = "github.com/berthhq/berth/"

var tools = sync.OnceValues(buildTools)

// Build builds the programs from this repository. It skips the test if they cannot run because the
// user is not root.
func Build(t testing.TB) Tools {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	got, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// buildTools relies on the cache of the go command: a repeated build takes a second. All test
// processes share one directory, which a lock protects.
func buildTools() (Tools, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("berth-test-tools-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Tools{}, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return Tools{}, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return Tools{}, err
	}
	static := []string{"-trimpath", "-tags", "netgo osusergo grpcnotrace", "-ldflags", "-s -w"}
	seccomp := []string{"-trimpath", "-tags", "seccomp netgo osusergo", "-ldflags", "-s -w -linkmode external -extldflags -static"}
	got := Tools{}
	for _, b := range []struct {
		path *string
		name string
		pkg  string
		cgo  string
		args []string
	}{
		{&got.Shim, "containerd-shim-runc-v2", module + "cmd/containerd-shim-runc-v2", "0", static},
		{&got.Runc, "runc", "github.com/opencontainers/runc", "1", seccomp},
		{&got.Runner, "berth-runner", module + "cmd/berth-runner", "0", static},
		{&got.Prog, "prog", module + "agent/runtime/runtimetest/prog", "0", static},
	} {
		*b.path = filepath.Join(dir, b.name)
		cmd := exec.Command("go", append(append([]string{"build", "-o", *b.path}, b.args...), b.pkg)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+b.cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return Tools{}, fmt.Errorf("build %s: %w\n%s", b.name, err, out)
		}
	}
	return got, nil
}
