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

func TestRotatedKeyOpensOldValues(t *testing.T) {
	dir := t.TempDir()
	old := load(t, dir).Seal("p", []byte("old"))
	if err := seal.Rotate(dir); err != nil {
		t.Fatal(err)
	}
	r := load(t, dir)
	if got, err := r.Open("p", old); err != nil || string(got) != "old" {
		t.Errorf("opened %q, %v", got, err)
	}
	if r.Current(old) || !r.Current(r.Seal("p", nil)) {
		t.Error("the new key does not seal")
	}
	if _, err := load(t, t.TempDir()).Open("p", old); err == nil {
		t.Error("a stranger's ring opened it")
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
