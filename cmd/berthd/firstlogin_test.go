package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/testenv"
)

// The file tells the first superadmin where to log in: behind a proxy that is not where
// the manager listens.
func TestFirstLoginHasThePublicURL(t *testing.T) {
	t.Parallel()
	stores := []string{"--postgres", testenv.Postgres(t), "--redis", testenv.Redis(t), "--etcd", testenv.Etcd(t), "--public-url", "https://berth.example/"}
	secrets, address := t.TempDir(), freePort(t)
	m, said := managerProcess(t, stores, address, secrets)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Process.Kill(); _ = m.Wait() })
	for deadline := time.Now().Add(2 * time.Minute); readyz(address) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = m.Process.Kill()
			_ = m.Wait()
			t.Fatalf("the manager does not serve:\n%s", said)
		}
	}
	text, err := os.ReadFile(filepath.Join(secrets, "first-login.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept firstLogin
	if err := json.Unmarshal(text, &kept); err != nil || kept.URL != "https://berth.example" {
		t.Errorf("%+v, %v", kept, err)
	}
}
