package sshserver

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestHostKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "host_ed25519_key")
	first, err := HostKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := HostKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256} {
		if got := first[i].PublicKey().Type(); got != kind {
			t.Errorf("key %d is %s, want %s", i, got, kind)
		}
		if ssh.FingerprintSHA256(again[i].PublicKey()) != ssh.FingerprintSHA256(first[i].PublicKey()) {
			t.Errorf("%s: another key", kind)
		}
	}
	for _, path := range []string{path, filepath.Join(filepath.Dir(path), "host_ecdsa_key")} {
		if i, err := os.Stat(path); err != nil || i.Mode() != 0o600 {
			t.Errorf("%v %v", i, err)
		}
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := HostKeys(path); err == nil {
				t.Errorf("a key of the mode %v is used", mode)
			}
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, 50); err != nil {
		t.Fatal(err)
	}
	if _, err := HostKeys(path); err == nil {
		t.Error("a truncated key is used, or replaced")
	}
}
