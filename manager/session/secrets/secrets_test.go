package secrets

import (
	"bytes"
	"testing"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/seal"
)

// A session keeps its secret when a manager restarts and when keys are rotated. No part of the
// secret is stored unencrypted.
func TestPeerSecretIsSealed(t *testing.T) {
	t.Parallel()
	keys, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secret := newPeerSecret(2)
	if len(secret) != peerSecretSize || bytes.Equal(secret, newPeerSecret(2)) || newPeerSecret(1) != nil {
		t.Fatalf("the secret is %x", secret)
	}
	sealed, _, err := Values{Peers: secret}.Seal(keys)
	if err != nil || bytes.Contains(sealed, secret) {
		t.Fatalf("sealed as %x, %v", sealed, err)
	}
	x, err := Open(keys, &ent.Session{SecretsSealed: sealed})
	if err != nil || !bytes.Equal(x.Peers, secret) {
		t.Errorf("opened %x, %v", x.Peers, err)
	}
}
