package ssh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

// TestConfigIsReadByOpenSSH logs in with the written file and no other options.
func TestConfigIsReadByOpenSSH(t *testing.T) {
	f := newServer(t)
	g, home := newFakeGateway(t, f)
	path := filepath.Join(home, ".ssh/berth/config")
	r := result(t, berth(t, f, home, "ssh-config"), "")
	want := "HOST SESSION CONTAINER berth.train train main berth.train.sub1 train sub1"
	if strings.Join(strings.Fields(r.Out), " ") != want || r.Code != 0 || !strings.HasSuffix(r.Errors, ": Include ~/.ssh/berth/config\n") {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"berth.train", "berth.train.sub1"} {
		out, err := exec.Command("ssh", "-F", path, name, "echo in").CombinedOutput()
		if err != nil || string(out) != "in\n" {
			t.Errorf("%s: %q %v", name, out, err)
		}
	}
	if diff := cmp.Diff([]string{idTrain, idTrain + ".sub1"}, g.seen()); diff != "" {
		t.Error(diff)
	}
}

func TestConfigIsReplaced(t *testing.T) {
	f := newServer(t)
	_, home := newFakeGateway(t, f)
	path := filepath.Join(home, ".ssh/berth/config")
	if err := os.WriteFile(filepath.Join(home, ".ssh/config"), []byte("Host x\n  Port 1\ninclude berth/config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (file string) {
		t.Helper()
		if r := result(t, berth(t, f, home, append([]string{"ssh-config"}, args...)...), ""); r.Code != 0 || r.Errors != "" {
			t.Fatalf("%q: %+v", args, r)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := run()
	written, err := os.Stat(path)
	if err != nil || written.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", written, err)
	}
	if second := run(); second != first {
		t.Error(cmp.Diff(first, second))
	}
	if again, err := os.Stat(path); err != nil || !os.SameFile(written, again) || !again.ModTime().Equal(written.ModTime()) {
		t.Errorf("the file was written again: %v %v", again, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	have(f)
	if text := run(); strings.Contains(text, "Host ") {
		t.Errorf("without a session: %s", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestConfigOfNamedSessions(t *testing.T) {
	f := newServer(t)
	f.Data("SSHEndpoint", `{"server":{"ssh":{"host":"gate.example.org","port":2222,"hostKey":"ssh-ed25519 AAAA comment\n"}}}`)
	home := t.TempDir()
	r := result(t, berth(t, f, home, "ssh-config", "train", "train", "--token", "--write", "-"), "")
	if r.Code != 0 || r.Errors != "" {
		t.Fatalf("%+v", r)
	}
	clitest.Golden(t, "ssh-config", strings.ReplaceAll(r.Out, home, "/home/kim"))
	known, err := os.ReadFile(filepath.Join(home, ".config/berth/known_hosts_gate.example.org_2222"))
	if err != nil || string(known) != "berth-gateway ssh-ed25519 AAAA\n" {
		t.Errorf("%q %v", known, err)
	}
	have(f, `{"id":"`+idTrain+`","name":"train","status":"PENDING","kernels":[]}`)
	if r := result(t, berth(t, f, home, "ssh-config", "train"), ""); r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "is pending") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(home, ".ssh")); err == nil {
		t.Error("a file was written")
	}
}

// TestNamesOfHosts lists sessions whose names are no host names, or not unique.
func TestNamesOfHosts(t *testing.T) {
	f := newServer(t)
	f.Data("SSHEndpoint", `{"server":{"ssh":{"host":"gate.example.org","port":2222,"hostKey":"ssh-ed25519 AAAA"}}}`)
	session := func(n int, name string) string {
		return fmt.Sprintf(`{"id":"id%d","name":%q,"status":"RUNNING","kernels":[{"id":"k","hostname":"main","status":"RUNNING"}]}`, n, name)
	}
	have(f, session(1, "train"), session(2, "my work"), session(3, "same"), session(4, "same"))
	r := result(t, berth(t, f, t.TempDir(), "ssh-config", "--token", "--write", filepath.Join(t.TempDir(), "new/file")), "")
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(r.Out), "\n")[1:] {
		got = append(got, strings.Fields(line)[0])
	}
	if diff := cmp.Diff([]string{"berth.train", "berth.id2", "berth.id3", "berth.id4"}, got); diff != "" || r.Code != 0 {
		t.Errorf("%+v\n%s", r, diff)
	}
}
