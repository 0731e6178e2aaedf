package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/testenv"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// The file contains the address at which the first superadmin logs in. Behind a reverse proxy, this
// is not the address on which the manager listens.
func TestFirstLoginHasThePublicURL(t *testing.T) {
	t.Parallel()
	stores := []string{"--postgres", testenv.Postgres(t), "--redis", testenv.Redis(t), "--etcd", testenv.Etcd(t), "--public-url", "https://berth.example/"}
	secrets, address := t.TempDir(), freePort(t)
	m, said := managerProcess(t, stores, address, secrets)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Process.Kill()
		_ = m.Wait()
		if t.Failed() {
			t.Logf("the manager's log:\n%s", said)
		}
	})
	wait.Until(t, "the manager serves", func() bool { return readyz(address) != "" })
	text, err := os.ReadFile(filepath.Join(secrets, "first-login.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept firstLogin
	if err := json.Unmarshal(text, &kept); err != nil || kept.URL != "https://berth.example" {
		t.Errorf("%+v, %v", kept, err)
	}
}
