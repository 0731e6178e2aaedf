// Package ticket creates and verifies short signed tickets: those with which people move bytes over a
// storage proxy's HTTP side, and those with which an agent fetches the parts of an image from another
// agent. The manager signs; the proxy or the other agent verifies, without a call between them.
package ticket

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"
)

// Operations a ticket can allow. A ticket allows exactly one of them.
const (
	Upload   = "upload"
	Download = "download"
	Archive  = "archive"
	// Layers is for agents: User is the name of the agent that fetches, and Path the digest of the
	// image whose parts it can fetch.
	Layers = "layers"
)

// Claims are the contents of a ticket: the user, the operation, the path and the expiry.
type Claims struct {
	Operation string
	Volume    string
	Scope     string // uuid of the user or project that owns the folder
	Folder    string // uuid
	Path      string // below the folder; "" is the folder itself
	Size      int64  // upload: the exact size of the file, zero included
	User      string
	Session   string    // the session that the ticket is for; "" for a person
	ID        string    // random; Sign sets it when it is empty
	Issued    time.Time // whole milliseconds; Sign sets it when it is zero
	Expires   time.Time // whole seconds
}

// version of the payload. A proxy refuses any other version, and any unknown field, because it may
// be a restriction.
const version = 1

// domain prevents that the signature of a ticket is valid for other data.
const domain = "berth.ticket.v1."

// encoding is strict, so one ticket has one spelling.
var encoding = base64.RawURLEncoding.Strict()

type payload struct {
	Version   int    `json:"v"`
	Key       string `json:"key"`
	Operation string `json:"op"`
	Volume    string `json:"volume"`
	Scope     string `json:"scope"`
	Folder    string `json:"folder"`
	Path      string `json:"path"`
	Size      int64  `json:"size"`
	User      string `json:"user"`
	Session   string `json:"session,omitempty"`
	ID        string `json:"id"`
	Issued    int64  `json:"iat"` // milliseconds: permissions can change twice in a second
	Expires   int64  `json:"exp"`
}

// NewKey returns a fresh signing key.
func NewKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate ticket key: %w", err)
	}
	return key, nil
}

// KeyID returns the id of a public key: the first 8 bytes of its SHA-256, in hex.
func KeyID(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}
