package ticket_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/ticket"
)

// Proxies accept a new key before it signs, and the old key as long as its tickets are valid.
func TestRing(t *testing.T) {
	dir := t.TempDir()
	load := func() *ticket.Ring { // as a manager that starts now
		t.Helper()
		r, err := ticket.LoadRing(dir)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rotate := func(since time.Time) {
		t.Helper()
		until, err := ticket.Rotate(dir, since)
		if err != nil || until.Before(since.Add(ticket.Life)) {
			t.Fatalf("until %s, %v", until, err)
		}
	}
	claims := ticket.Claims{Operation: ticket.Download, Expires: time.Now().Add(time.Hour)}
	counts := func(token string) bool {
		var v ticket.Verifier
		if err := v.SetKeys(load().PublicKeys()); err != nil {
			t.Fatal(err)
		}
		_, err := v.Verify(token, ticket.Download)
		return err == nil
	}
	keyOf := func(token string) string { t.Helper(); return keyID(t, token) }

	old := load().Sign(claims)
	if keyOf(load().Sign(claims)) != keyOf(old) {
		t.Error("another manager has another key")
	}
	rotate(time.Now().Add(time.Hour)) // in the future: published, but not used to sign
	if n := len(load().PublicKeys()); n != 2 || keyOf(load().Sign(claims)) != keyOf(old) {
		t.Errorf("%d keys before the new one begins", n)
	}
	if _, err := ticket.Rotate(dir, time.Now()); err == nil {
		t.Error("a key begins before one that is there already")
	}

	dir = t.TempDir()
	old = load().Sign(claims)
	follows := load()
	rotate(time.Now().Add(-time.Hour)) // has begun
	fresh := load().Sign(claims)
	if keyOf(fresh) == keyOf(old) || !counts(old) || !counts(fresh) {
		t.Errorf("in the overlap: old %v, new %v", counts(old), counts(fresh))
	}
	wait.Until(t, "a running signer uses the new key", func() bool { return keyOf(follows.Sign(claims)) == keyOf(fresh) })

	dir = t.TempDir()
	old = load().Sign(claims)
	rotate(time.Now().Add(-ticket.Life - time.Hour)) // its tickets have expired
	if n := len(load().PublicKeys()); n != 1 || counts(old) || !counts(load().Sign(claims)) {
		t.Errorf("after the overlap: %d keys, the old one counts: %v", n, counts(old))
	}
	rotate(time.Now())
	if text, err := os.ReadFile(filepath.Join(dir, "ticket.keys")); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("the ring has %q, %v", text, err)
	}

	old = load().Sign(claims)
	if err := ticket.Replace(dir); err != nil {
		t.Fatal(err)
	}
	if n := len(load().PublicKeys()); n != 1 || counts(old) || !counts(load().Sign(claims)) {
		t.Errorf("after it was replaced: %d keys, the old one counts: %v", n, counts(old))
	}
	if info, err := os.Stat(filepath.Join(dir, "ticket.keys")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	running := load()
	for _, nonsense := range []string{"", "1 x\n", "1 AAAA\n", "x " + strings.Repeat("A", 43) + "\n"} {
		path := filepath.Join(dir, "ticket.keys")
		if err := os.WriteFile(path+".new", []byte(nonsense), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.LoadRing(dir); err == nil {
			t.Errorf("a ring of %q is taken", nonsense)
		}
	}
	// A running process keeps its keys, and reads the file again every second.
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n := len(running.PublicKeys()); n != 1 {
			t.Fatalf("%d keys while the ring cannot be read", n)
		}
	}
	if err := ticket.Replace(t.TempDir()); err == nil {
		t.Error("a key is created without a ring")
	}
}

// keyID is the key that a ticket names.
func keyID(t *testing.T, token string) string {
	t.Helper()
	body, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	var p struct{ Key string }
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Key
}
