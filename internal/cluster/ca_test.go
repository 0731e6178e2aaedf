package cluster

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
)

func TestManagersAgreeOnOneAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	prints := make([]string, 8)
	var all sync.WaitGroup
	for i := range prints {
		all.Go(func() {
			ca, err := LoadOrCreateCA(dir)
			if err != nil {
				t.Error(err)
				return
			}
			prints[i] = ca.Fingerprint()
		})
	}
	all.Wait()
	for _, p := range prints {
		if p != prints[0] || len(p) != 64 {
			t.Fatalf("fingerprints differ: %q", prints)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v (%v), want one", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
}

func TestDamagedAuthorityIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(path, []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateCA(dir); !errdefs.IsDataLoss(err) {
		t.Errorf("error %v, want data loss", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "-----BEGIN" {
		t.Errorf("file was changed to %q", b)
	}
}

func TestIssueRefuses(t *testing.T) {
	ca, err := newCA()
	if err != nil {
		t.Fatal(err)
	}
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	good, err := newRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	forged := append([]byte{}, good...)
	forged[len(forged)-1] ^= 1 // the signature's last bit
	for name, c := range map[string]struct {
		csr        []byte
		role, node string
	}{
		"role of a manager":   {good, roleManager, "n1"},
		"no role":             {good, "", "n1"},
		"no name":             {good, RoleAgent, ""},
		"name with a slash":   {good, RoleAgent, "../n1"},
		"name with a newline": {good, RoleAgent, "n1\n"},
		"no request":          {nil, RoleAgent, "n1"},
		"forged request":      {forged, RoleAgent, "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ca.Issue(c.csr, c.role, c.node, "", time.Hour); !errdefs.IsInvalidArgument(err) {
				t.Errorf("error %v, want invalid argument", err)
			}
		})
	}
	if _, err := ca.Issue(good, RoleAgent, "n1.rack-2", "", time.Hour); err != nil {
		t.Errorf("good request: %v", err)
	}
}
