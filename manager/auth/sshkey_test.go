package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func authorized(t *testing.T, public any) string {
	t.Helper()
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func TestCreatedSSHKey(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	as := w.As(t, w.A.Member)
	made, err := m.CreateSSHKey(as, auth.CreateSSHKeyInput{Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(*made.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))); got != made.SSHKey.PublicKey {
		t.Errorf("the halves are %s and %s", got, made.SSHKey.PublicKey)
	}
	again := made.SSHKey.PublicKey + " me@laptop"
	_, err = m.CreateSSHKey(as, auth.CreateSSHKeyInput{Name: "again", PublicKey: &again})
	code(t, err, problem.CodeAlreadyExists)
	_, err = m.DeleteSSHKey(w.As(t, w.A.Lead), auth.DeleteSSHKeyInput{ID: made.SSHKey.ID})
	code(t, err, problem.CodeNotFound)
	if _, err := m.DeleteSSHKey(as, auth.DeleteSSHKeyInput{ID: made.SSHKey.ID}); err != nil {
		t.Fatal(err)
	}
	if w.Client.SSHKey.Query().CountX(viewer.SystemContext(t.Context())) != 0 {
		t.Error("it is still there")
	}
}

func TestPublicSSHKeys(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := authorized(t, &curve.PublicKey)
	for _, c := range []struct {
		name, text, code string
	}{
		{"rsa 1024", authorized(t, &small.PublicKey), problem.CodeInvalidArgument},
		{"rsa 2048", authorized(t, &large.PublicKey), ""},
		{"options and comment", `command="rm -rf /",no-pty ` + good + " me@laptop", ""},
		{"dsa", "ssh-dss AAAAB3NzaC1kc3MAAAAA", problem.CodeInvalidArgument},
		{"two lines", good + "\n" + good, problem.CodeInvalidArgument},
		{"private", "-----BEGIN OPENSSH PRIVATE KEY-----", problem.CodeInvalidArgument},
		{"nothing", "", problem.CodeInvalidArgument},
		{"long", strings.Repeat("a", 9<<10), problem.CodeInvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := m.CreateSSHKey(w.As(t, w.A.Member), auth.CreateSSHKeyInput{Name: "k", PublicKey: &c.text})
			code(t, err, c.code)
			if err == nil && (made.PrivateKey != nil || len(strings.Fields(made.SSHKey.PublicKey)) != 2 || !strings.HasPrefix(made.SSHKey.Fingerprint, "SHA256:")) {
				t.Errorf("kept %+v", made.SSHKey)
			}
		})
	}
}
