package cosign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
)

// maxKeys limits the keys of a registry: each signature is verified with each of them.
const maxKeys = 20

// Key is a public key.
type Key struct {
	public      crypto.PublicKey
	Fingerprint string // sha256: and the hash of the key in DER
}

// ParseKeys reads public keys in PEM: ECDSA on the curve P-256, and ed25519.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	rest := []byte(strings.TrimSpace(text))
	for len(rest) > 0 {
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, fmt.Errorf("the keys are not in PEM: %w", errdefs.ErrInvalidArgument)
		}
		rest = []byte(strings.TrimSpace(string(after)))
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a PEM block is a %.40s, not a PUBLIC KEY: %w", block.Type, errdefs.ErrInvalidArgument)
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read a public key: %w: %w", err, errdefs.ErrInvalidArgument)
		}
		switch k := public.(type) {
		case *ecdsa.PublicKey:
			if k.Curve != elliptic.P256() {
				return nil, fmt.Errorf("an ECDSA key is on the curve %s, not P-256: %w", k.Curve.Params().Name, errdefs.ErrInvalidArgument)
			}
		case ed25519.PublicKey:
		default:
			return nil, fmt.Errorf("a key is neither ECDSA P-256 nor ed25519: %w", errdefs.ErrInvalidArgument)
		}
		hash := sha256.Sum256(block.Bytes)
		keys = append(keys, Key{public, "sha256:" + hex.EncodeToString(hash[:])})
		if len(keys) > maxKeys {
			return nil, fmt.Errorf("there are more than %d keys: %w", maxKeys, errdefs.ErrInvalidArgument)
		}
	}
	return keys, nil
}

// signed reports whether a signature of a text is of the key.
func (k Key) signed(text, signature []byte) bool {
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		hash := sha256.Sum256(text)
		return ecdsa.VerifyASN1(public, hash[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(public, text, signature)
	}
	return false
}

// signer returns the fingerprint of the key that made a signature, or "".
func signer(keys []Key, text, signature []byte) string {
	for _, k := range keys {
		if k.signed(text, signature) {
			return k.Fingerprint
		}
	}
	return ""
}
