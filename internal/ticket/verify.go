package ticket

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
)

// maxToken limits the length of a text that Verify reads: a path of 4096 bytes, escaped at worst
// six-fold by JSON and by 4/3 by base64, and the other fields.
const maxToken = 40 << 10

// Verifier checks tickets against a set of public keys that may change at any time. The zero value
// has no key and refuses everything.
type Verifier struct {
	keys atomic.Pointer[keys]
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// keys is one set of keys, by their ids, with the tickets that were verified with them.
type keys struct {
	public map[string]ed25519.PublicKey
	seen   verified
}

// SetKeys replaces the accepted keys. During a key rotation, the set contains the old and the new
// one.
func (v *Verifier) SetKeys(public [][]byte) error {
	next := &keys{public: make(map[string]ed25519.PublicKey, len(public))}
	for i, k := range public {
		if len(k) != ed25519.PublicKeySize {
			return fmt.Errorf("ticket key %d has %d bytes, not %d: %w", i, len(k), ed25519.PublicKeySize, errdefs.ErrInvalidArgument)
		}
		next.public[KeyID(k)] = ed25519.PublicKey(bytes.Clone(k))
	}
	v.keys.Store(next)
	return nil
}

// Verify returns the claims of a genuine, unexpired ticket for the operation.
// A ticket that cannot be trusted is Unauthenticated; a genuine one for
// another operation is PermissionDenied.
func (v *Verifier) Verify(token, operation string) (Claims, error) {
	p, err := v.open(token)
	if err != nil {
		return Claims{}, fmt.Errorf("ticket: %w", err)
	}
	if p.Operation != operation {
		return Claims{}, fmt.Errorf("ticket: is for %s, not for %s: %w", p.Operation, operation, errdefs.ErrPermissionDenied)
	}
	return Claims{
		Operation: p.Operation, Volume: p.Volume, Scope: p.Scope, Folder: p.Folder,
		Path: p.Path, Size: p.Size, User: p.User, Session: p.Session,
		ID: p.ID, Issued: time.UnixMilli(p.Issued).UTC(), Expires: time.Unix(p.Expires, 0).UTC(),
	}, nil
}

func (v *Verifier) open(token string) (p payload, err error) {
	k := v.keys.Load()
	switch {
	case token == "":
		return p, refused("missing")
	case len(token) > maxToken:
		return p, refused("malformed")
	case k == nil:
		return p, refused(stranger)
	}
	p, known := k.seen.get(token)
	if !known {
		if p, err = k.check(token); err != nil {
			return p, err
		}
		k.seen.add(token, p)
	}
	if !v.now().Before(time.Unix(p.Expires, 0)) {
		return p, refused("expired")
	}
	return p, nil
}

const stranger = "not signed with a known key"

// check verifies everything except the time.
func (k *keys) check(token string) (payload, error) {
	var p payload
	body, signature, found := strings.Cut(token, ".")
	if !found {
		return p, refused("malformed")
	}
	sig, err := encoding.DecodeString(signature)
	if err != nil {
		return p, refused("malformed signature")
	}
	raw, err := encoding.DecodeString(body)
	if err != nil {
		return p, refused("malformed payload")
	}
	// Until the signature is verified, only the id of the key is used.
	if err := decode(raw, &p); err != nil {
		return p, refused("malformed payload: " + err.Error())
	}
	key, ok := k.public[p.Key]
	if !ok || !ed25519.Verify(key, []byte(domain+body), sig) {
		return p, refused(stranger)
	}
	if err := p.check(); err != nil {
		return p, refused(err.Error())
	}
	return p, nil
}

func decode(raw []byte, p *payload) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text after it")
	}
	return nil
}

func (p *payload) check() error {
	if p.Version != version {
		return fmt.Errorf("version %d is not supported", p.Version)
	}
	if p.ID == "" {
		return errors.New("no id")
	}
	if p.Issued <= 0 {
		return errors.New("no time of issue")
	}
	if p.Size < 0 {
		return errors.New("negative size")
	}
	return nil
}

func (v *Verifier) now() time.Time {
	if v.Now != nil {
		return v.Now()
	}
	return time.Now()
}

func refused(why string) error {
	return fmt.Errorf("%s: %w", why, errdefs.ErrUnauthenticated)
}
