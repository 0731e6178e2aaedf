package ssh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

// TestSSH runs the ssh of this machine against a server that checks the login.
func TestSSH(t *testing.T) {
	f := newServer(t)
	g, home := newFakeGateway(t, f)
	for name, c := range map[string]struct {
		args, users []string
		stdin       string
		want        clitest.Result
	}{
		"output and exit code": {[]string{"train", "--", "echo out; echo err >&2; exit 7"}, []string{idTrain}, "",
			clitest.Result{Code: 7, Out: "out\n", Errors: "err\n"}},
		"standard input":     {[]string{"train", "--", "cat", "-"}, []string{idTrain}, "text", clitest.Result{Out: "text"}},
		"options of ssh":     {[]string{"train", "--", "-o", "RequestTTY=no", "-n", "cat"}, []string{idTrain}, "text", clitest.Result{}},
		"another container":  {[]string{"train.sub1", "--", "true"}, []string{idTrain + ".sub1"}, "", clitest.Result{}},
		"the main container": {[]string{"train.main", "--", "true"}, []string{idTrain}, "", clitest.Result{}},
		"by ID":              {[]string{idTrain, "--", "true"}, []string{idTrain}, "", clitest.Result{}},
		"a named key":        {[]string{"train", "-i", filepath.Join(home, ".ssh/berth-key"), "--", "true"}, []string{idTrain}, "", clitest.Result{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := result(t, berth(t, f, home, append([]string{"ssh"}, c.args...)...), c.stdin)
			if diff := cmp.Diff(c.want, r); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.users, g.seen()); diff != "" {
				t.Error(diff)
			}
		})
	}
	known, err := filepath.Glob(filepath.Join(home, ".config/berth/known_hosts_127.0.0.1_*"))
	if err != nil || len(known) != 1 {
		t.Fatalf("%q %v", known, err)
	}
	if info, err := os.Stat(known[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestSSHWithATokenOrAWrongKey(t *testing.T) {
	f := newServer(t)
	g, home := newFakeGateway(t, f)
	cmd := berth(t, f, home, "ssh", "train", "-i", filepath.Join(home, ".ssh/a"), "--", "-o", "BatchMode=yes", "true")
	if r := result(t, cmd, ""); r.Code != 255 || !strings.Contains(r.Errors, "Permission denied") {
		t.Errorf("%+v", r)
	}
	f.Data("SSHKeys", `{"sshKeys":{"edges":[],"pageInfo":{}}}`)
	ask := filepath.Join(home, "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho brt_token\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd = berth(t, f, home, "ssh", "train", "--token", "--", "echo", "in")
	cmd.Env = append(cmd.Env, "SSH_ASKPASS="+ask, "SSH_ASKPASS_REQUIRE=force")
	if r := result(t, cmd, ""); r.Code != 0 || r.Out != "in\n" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]string{idTrain}, g.seen()); diff != "" {
		t.Error(diff)
	}
}

// TestSSHChecksTheHostKey replaces the gateway with another server at the same address.
func TestSSHChecksTheHostKey(t *testing.T) {
	f := newServer(t)
	g, home := newFakeGateway(t, f)
	_, _, other := newKey(t)
	was := f.Answer["SSHEndpoint"](nil)
	before, _, _ := strings.Cut(was, `"hostKey":`)
	f.Data("SSHEndpoint", before+fmt.Sprintf(`"hostKey":%q}}}`, other))
	if r := result(t, berth(t, f, home, "ssh", "train", "--", "true"), ""); r.Code != 255 || !strings.Contains(r.Errors, "verification failed") {
		t.Errorf("%+v", r)
	}
	if users := g.seen(); users != nil {
		t.Errorf("%q logged in", users)
	}
	f.Data("SSHEndpoint", was) // the key that berth saved is replaced
	if r := result(t, berth(t, f, home, "ssh", "train", "--", "true"), ""); r.Code != 0 {
		t.Errorf("%+v", r)
	}
}

// TestSSHGetsSignals terminates berth, which must terminate ssh.
func TestSSHGetsSignals(t *testing.T) {
	f := newServer(t)
	g, home := newFakeGateway(t, f)
	cmd := berth(t, f, home, "ssh", "train", "--", "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.started:
	case <-t.Context().Done():
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("ssh ended without an error")
	}
}

func TestErrorsBeforeSSH(t *testing.T) {
	const endpoint = `{"server":{"ssh":{"host":%q,"port":2222,"hostKey":"ssh-ed25519 AAAA"}}}`
	key := `{"id":"1","name":"laptop","status":"EXPIRED","publicKey":"ssh-ed25519 AAAA"}`
	for name, c := range map[string]struct {
		prepare func(f *clitest.Server)
		args    []string
		code    int
		text    string
	}{
		"no gateway": {func(*clitest.Server) {}, []string{"ssh", "train"}, cli.ExitOwnFailure, "no SSH gateway"},
		"no key": {func(f *clitest.Server) {
			f.Data("SSHEndpoint", fmt.Sprintf(endpoint, "gate.example.org"))
		}, []string{"ssh", "train"}, cli.ExitOwnFailure, "berth ssh-key add"},
		"an expired key": {func(f *clitest.Server) {
			f.Data("SSHEndpoint", fmt.Sprintf(endpoint, "gate.example.org"))
			f.Data("SSHKeys", `{"sshKeys":`+clitest.Edges(key)+`}`)
		}, []string{"ssh", "train"}, cli.ExitOwnFailure, "berth ssh-key add"},
		"a host that looks like an option": {func(f *clitest.Server) {
			f.Data("SSHEndpoint", fmt.Sprintf(endpoint, "-oProxyCommand=x"))
		}, []string{"ssh", "train"}, cli.ExitOwnFailure, "not valid"},
		"a host with a line break": {func(f *clitest.Server) {
			f.Data("SSHEndpoint", fmt.Sprintf(endpoint, "a\nProxyCommand x"))
		}, []string{"ssh-config"}, cli.ExitGeneral, "not valid"},
		"pending": {func(f *clitest.Server) {
			have(f, `{"id":"`+idTrain+`","name":"train","status":"PENDING","kernels":[]}`)
		}, []string{"ssh", "train"}, cli.ExitOwnFailure, "berth session why train"},
		"ended": {func(f *clitest.Server) {
			have(f, `{"id":"`+idTrain+`","name":"train","status":"TERMINATED","kernels":[]}`)
		}, []string{"ssh", "train"}, cli.ExitOwnFailure, "is terminated; only a running session"},
		"unknown":   {func(f *clitest.Server) { have(f) }, []string{"ssh", "train"}, cli.ExitOwnFailure, `"train" does not exist`},
		"container": {func(*clitest.Server) {}, []string{"ssh", "train.sub2"}, cli.ExitOwnFailure, "main, sub1"},
		"ambiguous": {func(f *clitest.Server) {
			have(f, `{"id":"`+idTrain+`","name":"train","status":"RUNNING"}`, `{"id":"`+idOther+`","name":"train","status":"RUNNING"}`)
		}, []string{"ssh", "train"}, cli.ExitOwnFailure, idTrain + ", " + idOther},
		"as another": {func(*clitest.Server) {}, []string{"ssh", "--as", "kim@example.org", "train"}, cli.ExitOwnFailure, "--as does not apply"},
		"no file":    {func(f *clitest.Server) { f.Data("SSHEndpoint", fmt.Sprintf(endpoint, "gate")) }, []string{"ssh", "train", "-i", "/no/key"}, cli.ExitOwnFailure, "--identity"},
		"two names":  {func(*clitest.Server) {}, []string{"ssh", "train", "ls"}, cli.ExitOwnFailure, "usage: berth ssh"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newServer(t)
			c.prepare(f)
			r := result(t, berth(t, f, t.TempDir(), c.args...), "")
			if r.Code != c.code || r.Out != "" || !strings.Contains(r.Errors, c.text) {
				t.Errorf("%+v, want code %d and %q", r, c.code, c.text)
			}
		})
	}
}

func TestSSHIsNotInstalled(t *testing.T) {
	f := newServer(t)
	t.Setenv("PATH", t.TempDir())
	if r := f.Run("ssh", "train"); r.Code != cli.ExitOwnFailure || !strings.Contains(r.Errors, "is not installed on this machine") {
		t.Errorf("%+v", r)
	}
}
