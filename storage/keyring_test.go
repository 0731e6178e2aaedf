package storage

import (
	"testing"
	"time"

	"github.com/berthhq/berth/internal/ticket"
)

// The keys of connected managers are valid. The keys of the last connected manager stay valid until
// another one connects.
func TestKeyring(t *testing.T) {
	ring := &keyring{verifier: &ticket.Verifier{}}
	manager := func() *ticket.Signer {
		t.Helper()
		key, err := ticket.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		return ticket.NewSigner(key)
	}
	join := func(s *ticket.Signer) (leave func()) {
		t.Helper()
		leave, err := ring.join([][]byte{s.PublicKey()})
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	a, b, c := manager(), manager(), manager()
	count := func(when string, want ...bool) {
		t.Helper()
		for i, s := range []*ticket.Signer{a, b, c} {
			_, err := ring.verifier.Verify(s.Sign(ticket.Claims{Operation: ticket.Download, Expires: time.Now().Add(time.Hour)}), ticket.Download)
			if got := err == nil; got != want[i] {
				t.Errorf("%s: tickets of manager %d count: %v", when, i+1, got)
			}
		}
	}
	count("before the first client", false, false, false)
	leaveA, leaveB := join(a), join(b)
	count("two are there", true, true, false)
	if _, err := ring.join([][]byte{{1}}); err == nil {
		t.Error("half a key is taken")
	}
	count("nonsense came", true, true, false)
	leaveA()
	count("the first has left", false, true, false)
	leaveB()
	count("all have left", false, true, false)
	join(c)
	count("another one has come", false, false, true)
}
