package ticket

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Signer signs tickets with one key.
type Signer struct {
	key ed25519.PrivateKey
	id  string
}

// NewSigner returns a signer for a key that NewKey generated.
func NewSigner(key ed25519.PrivateKey) *Signer {
	return &Signer{key: key, id: KeyID(key.Public().(ed25519.PublicKey))}
}

// PublicKey returns the public key for a Verifier, 32 bytes.
func (s *Signer) PublicKey() []byte {
	return s.key.Public().(ed25519.PublicKey)
}

// Sign returns the text of a ticket: payload.signature, both base64url.
func (s *Signer) Sign(c Claims) string {
	if c.ID == "" {
		var b [16]byte
		rand.Read(b[:]) // never fails
		c.ID = hex.EncodeToString(b[:])
	}
	if c.Issued.IsZero() {
		c.Issued = time.Now()
	}
	raw, err := json.Marshal(payload{
		Version: version, Key: s.id,
		Operation: c.Operation, Volume: c.Volume, Scope: c.Scope, Folder: c.Folder,
		Path: c.Path, Size: c.Size, User: c.User, Session: c.Session,
		ID: c.ID, Issued: c.Issued.UnixMilli(), Expires: c.Expires.Unix(),
	})
	if err != nil {
		panic(err) // strings and integers only
	}
	body := encoding.EncodeToString(raw)
	return body + "." + encoding.EncodeToString(ed25519.Sign(s.key, []byte(domain+body)))
}
