package sshserver

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestHostKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "key")
	first, err := HostKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := HostKey(path)
	if err != nil || ssh.FingerprintSHA256(again.PublicKey()) != ssh.FingerprintSHA256(first.PublicKey()) {
		t.Errorf("another key, or %v", err)
	}
	if i, err := os.Stat(path); err != nil || i.Mode() != 0o600 {
		t.Errorf("%v %v", i, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := HostKey(path); err == nil {
			t.Errorf("a key of the mode %v is used", mode)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 50); err != nil {
		t.Fatal(err)
	}
	if _, err := HostKey(path); err == nil {
		t.Error("half a key is used, or another made")
	}
}
