package seal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/seal"
)

func load(t *testing.T, dir string) *seal.Ring {
	t.Helper()
	r, err := seal.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOpensWhatItSealedForTheSamePurposeOnly(t *testing.T) {
	r := load(t, t.TempDir())
	sealed := r.Seal("keypair", []byte("secret"))
	if bytes.Contains(sealed, []byte("secret")) {
		t.Error("the secret is in the sealed value")
	}
	got, err := r.Open("keypair", sealed)
	if err != nil || string(got) != "secret" {
		t.Errorf("opened %q, %v", got, err)
	}
	if _, err := r.Open("registry", sealed); err == nil {
		t.Error("opened for another purpose")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := r.Open("keypair", sealed); err == nil {
		t.Error("opened although changed")
	}
	for _, short := range [][]byte{nil, sealed[:3], sealed[:6]} {
		if _, err := r.Open("keypair", short); err == nil {
			t.Errorf("opened %d bytes", len(short))
		}
	}
}

func TestKeysChange(t *testing.T) {
	dir := t.TempDir()
	running := load(t, dir)
	old := running.Seal("p", []byte("old"))
	opens := func(r *seal.Ring, sealed []byte, want string) {
		t.Helper()
		if got, err := r.Open("p", sealed); err != nil || string(got) != want {
			t.Errorf("opened %q, %v", got, err)
		}
	}
	add := func() {
		t.Helper()
		if err := seal.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	late := load(t, dir) // seals nothing until the keys have changed
	add()
	fresh := load(t, dir)
	opens(fresh, old, "old")
	young := running.Seal("p", []byte("young"))
	if bytes.HasPrefix(old, running.Mark()) || !bytes.HasPrefix(young, fresh.Mark()) {
		t.Error("a ring that was loaded before does not seal with the new key")
	}
	opens(late, young, "young")
	add() // continues with the change that was begun
	if !bytes.HasPrefix(young, load(t, dir).Mark()) {
		t.Error("a third key was created")
	}
	if err := seal.Retire(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, dir).Open("p", old); err == nil {
		t.Error("the old key is still there")
	}
	opens(load(t, dir), young, "young")
	opens(running, old, "old") // a value that it read from the database before
	if _, err := load(t, t.TempDir()).Open("p", old); err == nil {
		t.Error("another ring decrypted it")
	}
	st, err := os.Stat(filepath.Join(dir, "seal.keys"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the ring's mode is %v, %v", st.Mode(), err)
	}
}

func TestRefusesABrokenRing(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "short": "AAAA\n", "no base64": "!\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "seal.keys"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := seal.Load(dir); err == nil {
				t.Error("loaded")
			}
		})
	}
}
