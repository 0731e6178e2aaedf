package password

import (
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

var cheap = Cost{Memory: 1024, Time: 1, Threads: 1}

func TestHash(t *testing.T) {
	ctx := t.Context()
	h := NewHasher(cheap)
	hash, err := h.Hash(ctx, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=1024,t=1,p=1$") {
		t.Errorf("hash is %q", hash)
	}
	again, _ := h.Hash(ctx, "correct horse")
	if again == hash {
		t.Error("two hashes share a salt")
	}
	dearer := NewHasher(Cost{Memory: 2048, Time: 1, Threads: 1})
	for name, c := range map[string]struct {
		hasher         *Hasher
		hash, password string
		ok, stale      bool
	}{
		"right":               {h, hash, "correct horse", true, false},
		"wrong":               {h, hash, "correct horsE", false, false},
		"empty":               {h, hash, "", false, false},
		"right, old cost":     {dearer, hash, "correct horse", true, true},
		"wrong, old cost":     {dearer, hash, "x", false, false},
		"no such user":        {h, "", "correct horse", false, false},
		"longer than allowed": {h, hash, strings.Repeat("a", 1<<20), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ok, stale, err := c.hasher.Check(ctx, c.hash, c.password)
			if err != nil || ok != c.ok || stale != c.stale {
				t.Errorf("got %v %v %v, want %v %v", ok, stale, err, c.ok, c.stale)
			}
		})
	}
}

func TestBrokenHashes(t *testing.T) {
	h := NewHasher(cheap)
	for _, hash := range []string{
		"plain", "$2a$10$abc", "$argon2id$v=18$m=1024,t=1,p=1$AAAA$AAAA", "$argon2id$v=19$m=1024,t=0,p=1$AAAA$" + strings.Repeat("A", 43),
		"$argon2id$v=19$m=99999999,t=1,p=1$AAAA$" + strings.Repeat("A", 43), "$argon2id$v=19$m=1024,t=1,p=1$AAAA$",
	} {
		if ok, _, err := h.Check(t.Context(), hash, "x"); err == nil || ok {
			t.Errorf("%q was accepted", hash)
		}
	}
}

// An unknown user must not be recognized by the time of the answer. The test compares
// processor time, which other programs of the machine do not change.
func TestUnknownUserTakesAsLong(t *testing.T) {
	h := NewHasher(DefaultCost())
	hash, err := h.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	least := func(hash string) time.Duration {
		best := time.Hour
		for range 5 {
			before := spent()
			if ok, _, err := h.Check(t.Context(), hash, "wrong horse"); ok || err != nil {
				t.Fatal(ok, err)
			}
			best = min(best, spent()-before)
		}
		return best
	}
	known, unknown := least(hash), least("")
	if ratio := float64(known) / float64(unknown); ratio < 0.5 || ratio > 2 {
		t.Errorf("known %v, unknown %v", known, unknown)
	}
}

func TestRulesOfNoDomain(t *testing.T) {
	for password, ok := range map[string]bool{
		"0123456789":                     true,
		"012345678":                      false,
		"äöüäöüäöüä":                     true,
		strings.Repeat("abcd", 32):       true,
		strings.Repeat("abcd", 32) + "e": false,
		"0123456789\x00":                 false,
		"0123456789\xff":                 false,
	} {
		if err := (Rules{}).Check("password", password); (err == nil) != ok || err != nil && !errdefs.IsInvalidArgument(err) {
			t.Errorf("%q: %v", password, err)
		}
	}
}

func TestGenerate(t *testing.T) {
	a, b := Generate(20), Generate(20)
	if len(a) != 20 || a == b {
		t.Errorf("generated %q and %q", a, b)
	}
}
