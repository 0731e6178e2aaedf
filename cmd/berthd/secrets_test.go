package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// asBerthd makes the test binary run as berthd.
const asBerthd = "BERTHD_TEST_IS_BERTHD"

func TestMain(m *testing.M) {
	if os.Getenv(asBerthd) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// managerProcess returns a berthd manager with these stores, which is not started yet.
func managerProcess(t *testing.T, stores []string, http, secrets string) (cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	args := append([]string{"manager", "--http", http, "--cluster", "127.0.0.1:0", "--secrets", secrets}, stores...)
	cmd, out = exec.CommandContext(t.Context(), os.Args[0], args...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), asBerthd+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, out
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// readyz returns a manager's answer, or "" if it does not respond.
func readyz(address string) string {
	res, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return string(text)
}

// A manager whose secrets differ from those of its cluster would create a certificate authority
// that no machine trusts. It does not start, and the running manager continues.
func TestManagerWithOtherSecrets(t *testing.T) {
	t.Parallel()
	stores := []string{"--postgres", testenv.Postgres(t), "--redis", testenv.Redis(t), "--etcd", testenv.Etcd(t)}
	ours, address := t.TempDir(), freePort(t)
	first, said := managerProcess(t, stores, address, ours)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Process.Kill(); _ = first.Wait() })
	wait.Until(t, "the first manager leads", func() bool { return strings.Contains(readyz(address), "leader ok") })
	before := readyz(address)

	empty, otherCA, otherSeal := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, without := range map[string]string{otherCA: "ca.pem", otherSeal: "seal.keys"} {
		other := t.TempDir()
		foreign, _ := managerProcess(t, []string{"--postgres", testenv.Postgres(t), "--redis", testenv.Redis(t), "--etcd", testenv.Etcd(t)}, freePort(t), other)
		if err := foreign.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(other, "ticket.keys"))
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
		for _, name := range []string{"ca.pem", "seal.keys", "ticket.keys"} {
			from := ours
			if name == without {
				from = other
			}
			copyInto(t, filepath.Join(from, name), dir)
		}
	}
	for what, c := range map[string]struct{ dir, want string }{
		"an empty directory": {empty, "ca.pem is missing"},
		"another authority":  {otherCA, "ca.pem is another authority"},
		"another key ring":   {otherSeal, "seal.keys cannot decrypt the secrets of the cluster"},
	} {
		second, said := managerProcess(t, stores, freePort(t), c.dir)
		if err := second.Run(); err == nil {
			t.Errorf("%s: the manager ended without an error", what)
		}
		for _, want := range []string{c.want, "Copy ca.pem, seal.keys and ticket.keys from the --secrets directory of the manager at 127.0.0.1:"} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: the output is\n%swithout %q", what, said, want)
			}
		}
	}
	if left, _ := os.ReadDir(empty); len(left) > 0 {
		t.Errorf("it created %v", left)
	}
	if now := readyz(address); now != before {
		t.Errorf("the first manager said %q, now %q", before, now)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if strings.Contains(said.String(), "no longer leading") {
		t.Errorf("the first manager lost the election:\n%s", said)
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	wait.Until(t, path+" exists", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
}

func copyInto(t *testing.T, file, dir string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
