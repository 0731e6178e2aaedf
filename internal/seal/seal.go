// Package seal encrypts the secrets that must be read again, such as those of keypairs and
// registries, before they go into the database. The keys are in a key ring, a file beside the
// cluster's other secrets. The last key encrypts and all keys decrypt, so keys can be changed
// without losing encrypted values.
package seal

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
)

const (
	keyBytes = 32 // AES-256
	idBytes  = 4
)

// Ring encrypts and decrypts. Load creates one. It follows its file: after a change of the file, it
// encrypts with the newest key. Keys that are no longer in the file continue to decrypt until the
// process ends.
type Ring struct {
	path string

	mu   sync.Mutex
	keys []key  // the last one encrypts
	text string // of the file, when keys were read from it
}

type key struct {
	id   [idBytes]byte
	aead cipher.AEAD
}

// Load reads the key ring in dir; the first call creates it.
func Load(dir string) (*Ring, error) {
	if err := ensure(dir); err != nil {
		return nil, err
	}
	r := &Ring{path: pathIn(dir)}
	return r, r.follow()
}

// follow reads the file again if it has changed.
func (r *Ring) follow() error {
	text, err := os.ReadFile(r.path)
	if err != nil {
		return fmt.Errorf("read key ring: %w", err)
	}
	if len(r.keys) > 0 && string(text) == r.text {
		return nil
	}
	fresh, err := parse(r.path, strings.Fields(string(text)))
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(r.keys, func(k key) bool { return has(fresh, k.id) })
	r.keys, r.text = append(old, fresh...), string(text)
	return nil
}

func has(keys []key, id [idBytes]byte) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.id == id })
}

// newest returns the key that encrypts now. If the file cannot be read, the known keys stay.
func (r *Ring) newest() key {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.follow()
	return r.keys[len(r.keys)-1]
}

// find returns the key that encrypted a value. An unknown key may have been added to the file in
// the meantime.
func (r *Ring) find(sealed []byte) (key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 2 {
		for _, k := range r.keys {
			if bytes.HasPrefix(sealed, k.id[:]) && len(sealed) >= idBytes+k.aead.NonceSize() {
				return k, true
			}
		}
		_ = r.follow()
	}
	return key{}, false
}

// Seal encrypts a secret. Open needs the same purpose, so an encrypted value cannot be used in
// another place.
func (r *Ring) Seal(purpose Purpose, secret []byte) []byte {
	k := r.newest()
	out := make([]byte, idBytes+k.aead.NonceSize(), idBytes+k.aead.NonceSize()+len(secret)+k.aead.Overhead())
	copy(out, k.id[:])
	nonce := out[idBytes:]
	rand.Read(nonce) // never fails
	return k.aead.Seal(out, nonce, secret, []byte(purpose))
}

// Open decrypts a value that Seal returned for the same purpose.
func (r *Ring) Open(purpose Purpose, sealed []byte) ([]byte, error) {
	k, ok := r.find(sealed)
	if !ok {
		return nil, fmt.Errorf("open %s: its key is not in the ring: %w", purpose, errdefs.ErrFailedPrecondition)
	}
	rest := sealed[idBytes:]
	secret, err := k.aead.Open(nil, rest[:k.aead.NonceSize()], rest[k.aead.NonceSize():], []byte(purpose))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", purpose, err)
	}
	return secret, nil
}

// Mark returns the prefix of values that are encrypted with the newest key.
func (r *Ring) Mark() []byte {
	k := r.newest()
	return k.id[:]
}
