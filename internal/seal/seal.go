// Package seal encrypts the secrets that must be read again, such as those of
// keypairs and registries, before they go into the database. A key ring in a
// file beside the cluster's other secrets holds the keys; the last one seals,
// all of them open, so that keys can be changed without losing what is sealed.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/errdefs"
)

const (
	keyBytes = 32 // AES-256
	idBytes  = 4
	fileName = "seal.keys"
)

// Ring seals and opens. Make it with Load.
type Ring struct{ keys []key }

type key struct {
	id   [idBytes]byte
	aead cipher.AEAD
}

// Load reads the key ring in dir; the first time it makes one.
func Load(dir string) (*Ring, error) {
	path := filepath.Join(dir, fileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := writeNew(path, newLine()); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("keep %s: %w", path, err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key ring: %w", err)
	}
	return parse(path, string(text))
}

func parse(path, text string) (*Ring, error) {
	r := &Ring{}
	for i, line := range strings.Fields(text) {
		raw, err := base64.RawStdEncoding.DecodeString(line)
		if err != nil || len(raw) != idBytes+keyBytes {
			return nil, fmt.Errorf("%s: line %d is no key: %w", path, i+1, errdefs.ErrFailedPrecondition)
		}
		block, err := aes.NewCipher(raw[idBytes:])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, key{id: [idBytes]byte(raw[:idBytes]), aead: aead})
	}
	if len(r.keys) == 0 {
		return nil, fmt.Errorf("%s holds no key: %w", path, errdefs.ErrFailedPrecondition)
	}
	return r, nil
}

// Rotate adds a key to the ring in dir. Managers seal with it once they start
// again; what older keys sealed still opens.
func Rotate(dir string) error {
	if _, err := Load(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, fileName)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read key ring: %w", err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(text, newLine()...), 0o600); err != nil {
		return fmt.Errorf("write key ring: %w", err)
	}
	return os.Rename(tmp, path)
}

func newLine() []byte {
	raw := make([]byte, idBytes+keyBytes)
	rand.Read(raw) // never fails
	return append([]byte(base64.RawStdEncoding.EncodeToString(raw)), '\n')
}

// writeNew writes a file that must not exist yet, all or nothing.
func writeNew(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".seal-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}

// Seal encrypts a secret. What it is for (a table and column, say) must be
// given again to open it, so that a sealed value cannot be moved elsewhere.
func (r *Ring) Seal(purpose string, secret []byte) []byte {
	k := r.keys[len(r.keys)-1]
	out := make([]byte, idBytes+k.aead.NonceSize(), idBytes+k.aead.NonceSize()+len(secret)+k.aead.Overhead())
	copy(out, k.id[:])
	nonce := out[idBytes:]
	rand.Read(nonce) // never fails
	return k.aead.Seal(out, nonce, secret, []byte(purpose))
}

// Open decrypts what Seal made for the same purpose.
func (r *Ring) Open(purpose string, sealed []byte) ([]byte, error) {
	for _, k := range r.keys {
		if !bytes.HasPrefix(sealed, k.id[:]) || len(sealed) < idBytes+k.aead.NonceSize() {
			continue
		}
		rest := sealed[idBytes:]
		secret, err := k.aead.Open(nil, rest[:k.aead.NonceSize()], rest[k.aead.NonceSize():], []byte(purpose))
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", purpose, err)
		}
		return secret, nil
	}
	return nil, fmt.Errorf("open %s: its key is not in the ring: %w", purpose, errdefs.ErrFailedPrecondition)
}

// Current tells whether the newest key sealed a value.
func (r *Ring) Current(sealed []byte) bool {
	return bytes.HasPrefix(sealed, r.keys[len(r.keys)-1].id[:])
}
