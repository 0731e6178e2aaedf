package ticket

import (
	"crypto/ed25519"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func claims() Claims {
	return Claims{
		Operation: Upload, Volume: "main",
		Scope: "5f1c9a52-0c6f-4a5e-9d0a-5f0f0b7a3f10", Folder: "9b2f4a6c-1111-4222-8333-444455556666",
		Path: "data/größe \"1\".csv", Size: 1 << 40, User: "u1", Session: "s1", ID: "abc",
		Issued: now.Add(-4*time.Minute + 250*time.Millisecond), Expires: now.Add(time.Minute),
	}
}

func newSigner(t *testing.T) *Signer {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return NewSigner(key)
}

func newVerifier(t *testing.T, signers ...*Signer) *Verifier {
	t.Helper()
	v := &Verifier{Now: func() time.Time { return now }}
	var keys [][]byte
	for _, s := range signers {
		keys = append(keys, s.PublicKey())
	}
	if err := v.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRoundTrip(t *testing.T) {
	s := newSigner(t)
	got, err := newVerifier(t, s).Verify(s.Sign(claims()), Upload)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(claims(), got); d != "" {
		t.Error(d)
	}
}

func TestIDIsRandom(t *testing.T) {
	s := newSigner(t)
	v := newVerifier(t, s)
	seen := map[string]bool{}
	for range 8 {
		c := claims()
		c.ID = ""
		got, err := v.Verify(s.Sign(c), Upload)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.ID) != 32 || seen[got.ID] {
			t.Fatalf("id %q is short or repeated", got.ID)
		}
		seen[got.ID] = true
	}
}

// The text is a contract between versions of two programs.
func TestFormatIsConstant(t *testing.T) {
	s := NewSigner(ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))))
	body, _, _ := strings.Cut(s.Sign(claims()), ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"key":"` + KeyID(s.PublicKey()) + `","op":"upload","volume":"main",` +
		`"scope":"5f1c9a52-0c6f-4a5e-9d0a-5f0f0b7a3f10","folder":"9b2f4a6c-1111-4222-8333-444455556666",` +
		`"path":"data/größe \"1\".csv","size":1099511627776,"user":"u1","session":"s1","id":"abc","iat":1893553205250,"exp":1893553505}`
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Error(d)
	}
	if len(KeyID(s.PublicKey())) != 16 {
		t.Errorf("key id %q", KeyID(s.PublicKey()))
	}
}

func TestVerifyRefuses(t *testing.T) {
	s, other := newSigner(t), newSigner(t)
	good := s.Sign(claims())
	body, sig, _ := strings.Cut(good, ".")
	resign := func(raw string) string {
		b := encoding.EncodeToString([]byte(raw))
		return b + "." + encoding.EncodeToString(ed25519.Sign(s.key, []byte(domain+b)))
	}
	flip := func(text string, i int) string {
		b := []byte(text)
		if b[i] == 'A' {
			b[i] = 'B'
		} else {
			b[i] = 'A'
		}
		return string(b)
	}
	expired := claims()
	expired.Expires = now
	download := claims()
	download.Operation = Download
	negative := claims()
	negative.Size = -1
	long := claims()
	long.Path = strings.Repeat("a", maxToken)
	raw, _ := encoding.DecodeString(body)

	for _, tc := range []struct {
		name  string
		token string
		class func(error) bool
	}{
		{"empty", "", errdefs.IsUnauthorized},
		{"no dot", body, errdefs.IsUnauthorized},
		{"no signature", body + ".", errdefs.IsUnauthorized},
		{"three parts", good + ".x", errdefs.IsUnauthorized},
		{"not base64", "§." + sig, errdefs.IsUnauthorized},
		{"not json", resign("hello"), errdefs.IsUnauthorized},
		{"huge", strings.Repeat("a", 1<<20) + "." + sig, errdefs.IsUnauthorized},
		{"longer than the longest ticket", s.Sign(long), errdefs.IsUnauthorized},
		{"payload changed", flip(body, 40) + "." + sig, errdefs.IsUnauthorized},
		{"payload's last byte changed", flip(body, len(body)-2) + "." + sig, errdefs.IsUnauthorized},
		{"signature changed", body + "." + flip(sig, 10), errdefs.IsUnauthorized},
		{"signature padded", good + "==", errdefs.IsUnauthorized},
		{"another key", other.Sign(claims()), errdefs.IsUnauthorized},
		{"another key under our key's name", encoding.EncodeToString(raw) + "." +
			encoding.EncodeToString(ed25519.Sign(other.key, []byte(domain+body))), errdefs.IsUnauthorized},
		{"signed without the domain", body + "." +
			encoding.EncodeToString(ed25519.Sign(s.key, []byte(body))), errdefs.IsUnauthorized},
		{"expired", s.Sign(expired), errdefs.IsUnauthorized},
		{"other operation", s.Sign(download), errdefs.IsPermissionDenied},
		{"negative size", s.Sign(negative), errdefs.IsUnauthorized},
		{"newer version", resign(strings.Replace(string(raw), `"v":1`, `"v":2`, 1)), errdefs.IsUnauthorized},
		{"unknown field", resign(strings.Replace(string(raw), `"v":1`, `"v":1,"only":"x"`, 1)), errdefs.IsUnauthorized},
		{"text after the ticket", resign(string(raw) + "{}"), errdefs.IsUnauthorized},
		{"no time of issue", resign(strings.Replace(string(raw), `"iat":1893553205250,`, "", 1)), errdefs.IsUnauthorized},
		{"no id", resign(strings.Replace(string(raw), `"id":"abc"`, `"id":""`, 1)), errdefs.IsUnauthorized},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := newVerifier(t, s).Verify(tc.token, Upload)
			if !tc.class(err) {
				t.Errorf("error %v has the wrong class", err)
			}
			if got != (Claims{}) {
				t.Errorf("claims %+v beside an error", got)
			}
		})
	}
	if _, err := newVerifier(t, s).Verify(good, Upload); err != nil {
		t.Errorf("the ticket that the rows are derived from: %v", err)
	}
}

func TestRotation(t *testing.T) {
	old, fresh := newSigner(t), newSigner(t)
	v := &Verifier{Now: func() time.Time { return now }}
	for _, step := range []struct {
		name       string
		keys       [][]byte
		old, fresh bool
	}{
		{"none", nil, false, false},
		{"before", [][]byte{old.PublicKey()}, true, false},
		{"overlap", [][]byte{old.PublicKey(), fresh.PublicKey()}, true, true},
		{"after", [][]byte{fresh.PublicKey()}, false, true},
	} {
		t.Run(step.name, func(t *testing.T) {
			if err := v.SetKeys(step.keys); err != nil {
				t.Fatal(err)
			}
			_, err := v.Verify(old.Sign(claims()), Upload)
			if (err == nil) != step.old {
				t.Errorf("old key: %v", err)
			}
			_, err = v.Verify(fresh.Sign(claims()), Upload)
			if (err == nil) != step.fresh {
				t.Errorf("new key: %v", err)
			}
		})
	}
	if err := v.SetKeys([][]byte{{1, 2, 3}}); !errdefs.IsInvalidArgument(err) {
		t.Errorf("short key: %v", err)
	}
	if _, err := v.Verify(fresh.Sign(claims()), Upload); err != nil {
		t.Errorf("a refused key set replaced the old one: %v", err)
	}
}

// The cache of verified tickets only saves time: tickets become invalid with their expiry and their
// key, and only the complete text is a match.
func TestSeenAgain(t *testing.T) {
	s, other := newSigner(t), newSigner(t)
	v := newVerifier(t, s)
	clock := now
	v.Now = func() time.Time { return clock }
	good := s.Sign(claims())
	accepted := func(token, operation string) bool {
		t.Helper()
		c, err := v.Verify(token, operation)
		if err == nil && !cmp.Equal(c, claims()) {
			t.Errorf("claims %+v", c)
		}
		return err == nil
	}
	for range 2 {
		if !accepted(good, Upload) {
			t.Error("refused")
		}
		if accepted(good, Download) || accepted(good[:len(good)-1], Upload) || accepted(good+"A", Upload) {
			t.Error("another operation or text is accepted")
		}
	}
	clock = claims().Expires.Add(-time.Second)
	if !accepted(good, Upload) {
		t.Error("refused in its last second")
	}
	clock = claims().Expires
	if accepted(good, Upload) {
		t.Error("accepted when its time was over")
	}
	clock = now
	for _, step := range []struct {
		keys *Signer
		want bool
	}{{s, true}, {other, false}, {s, true}} {
		if err := v.SetKeys([][]byte{step.keys.PublicKey()}); err != nil {
			t.Fatal(err)
		}
		if accepted(good, Upload) != step.want {
			t.Errorf("after a change of keys accepted: %v", !step.want)
		}
	}
}

func TestRemembersSome(t *testing.T) {
	v := &verified{}
	for i := range 10 * generation {
		v.add(strconv.Itoa(i), payload{ID: strconv.Itoa(i)})
		if p, known := v.get("0"); !known || p.ID != "0" {
			t.Fatalf("a used ticket is dropped after %d others", i)
		}
	}
	if n := len(v.young) + len(v.old); n > 2*generation {
		t.Errorf("%d are remembered", n)
	}
	if _, known := v.get("1"); known {
		t.Error("nothing is ever forgotten")
	}
}

func BenchmarkVerify(b *testing.B) {
	s := NewSigner(ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))))
	v := &Verifier{Now: func() time.Time { return now }}
	if err := v.SetKeys([][]byte{s.PublicKey()}); err != nil {
		b.Fatal(err)
	}
	token := s.Sign(claims())
	b.Run("first", func(b *testing.B) {
		k := v.keys.Load()
		for b.Loop() {
			if _, err := k.check(token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Verify(token, Upload); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func FuzzVerify(f *testing.F) {
	s := NewSigner(ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))))
	good := s.Sign(claims())
	f.Add(good)
	f.Add("a.b")
	v := &Verifier{Now: func() time.Time { return now }}
	if err := v.SetKeys([][]byte{s.PublicKey()}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := v.Verify(token, Upload); err == nil && token != good {
			t.Errorf("accepted %q", token)
		}
	})
}
