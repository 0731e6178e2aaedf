// Package password hashes and checks passwords with argon2id, kept as PHC
// strings, so that the cost can grow while old hashes still work.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"
)

// MinLength is in characters, MaxLength in bytes.
const (
	MinLength = 10
	MaxLength = 128
)

// Cost is what one hash takes.
type Cost struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultCost is OWASP's smallest memory with a pass more than it asks for:
// 19 MiB, so that a burst of logins does not push out everything else.
func DefaultCost() Cost { return Cost{Memory: 19 * 1024, Time: 3, Threads: 1} }

// most any stored hash may cost: a row must not be able to stop the manager.
var most = Cost{Memory: 256 * 1024, Time: 16, Threads: 16}

// parallel bounds hashing, and with it the memory it needs.
const parallel = 4

// giveBackAfter is how long the memory of a hash is kept for others. Go itself keeps it
// for minutes: a manager with nothing to do would hold on to twice what it needs.
const giveBackAfter = 2 * time.Second

const (
	saltLength = 16
	keyLength  = 32
)

// Hasher makes and checks hashes; at most a few at once.
type Hasher struct {
	cost  Cost
	slots *semaphore.Weighted
	dummy string
	// giving is true while memory is to be given back.
	giving atomic.Bool
}

// NewHasher returns a Hasher that makes hashes of the cost.
func NewHasher(cost Cost) *Hasher {
	h := &Hasher{cost: cost, slots: semaphore.NewWeighted(parallel)}
	h.dummy = h.encode(make([]byte, saltLength), make([]byte, keyLength))
	return h
}

// Hash returns the PHC string of p.
func (h *Hasher) Hash(ctx context.Context, p string) (string, error) {
	if err := h.slots.Acquire(ctx, 1); err != nil {
		return "", fmt.Errorf("wait to hash a password: %w", err)
	}
	defer h.release()
	salt := make([]byte, saltLength)
	rand.Read(salt) // never fails
	return h.encode(salt, argon2.IDKey([]byte(p), salt, h.cost.Time, h.cost.Memory, h.cost.Threads, keyLength)), nil
}

// Check reports whether p is the password of hash, and whether the hash is of
// another cost than new ones and should be made again. An empty hash, of a user
// that does not exist, takes as long and never matches.
func (h *Hasher) Check(ctx context.Context, hash, p string) (ok, stale bool, err error) {
	exists := hash != ""
	if !exists {
		hash = h.dummy
	}
	if len(p) > MaxLength {
		p, exists = p[:MaxLength], false
	}
	cost, salt, want, err := decode(hash)
	if err != nil {
		return false, false, err
	}
	if err := h.slots.Acquire(ctx, 1); err != nil {
		return false, false, fmt.Errorf("wait to check a password: %w", err)
	}
	defer h.release()
	got := argon2.IDKey([]byte(p), salt, cost.Time, cost.Memory, cost.Threads, uint32(len(want)))
	ok = subtle.ConstantTimeCompare(got, want) == 1 && exists
	return ok, ok && (cost != h.cost || len(want) != keyLength), nil
}

// release lets the next hash begin, and has the memory given back to the system, at most
// once in giveBackAfter.
func (h *Hasher) release() {
	h.slots.Release(1)
	if h.giving.CompareAndSwap(false, true) {
		time.AfterFunc(giveBackAfter, func() {
			h.giving.Store(false)
			debug.FreeOSMemory()
		})
	}
}

func (h *Hasher) encode(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, h.cost.Memory, h.cost.Time, h.cost.Threads, b64.EncodeToString(salt), b64.EncodeToString(key))
}

func decode(hash string) (c Cost, salt, key []byte, err error) {
	parts := strings.Split(hash, "$")
	var version int
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return c, nil, nil, fmt.Errorf("stored password is no argon2id hash")
	}
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return c, nil, nil, fmt.Errorf("stored password has argon2 version %q", parts[2])
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.Memory, &c.Time, &c.Threads); err != nil {
		return c, nil, nil, fmt.Errorf("stored password has cost %q", parts[3])
	}
	if c.Time < 1 || c.Threads < 1 || c.Memory > most.Memory || c.Time > most.Time || c.Threads > most.Threads {
		return c, nil, nil, fmt.Errorf("stored password has cost %q", parts[3])
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return c, nil, nil, fmt.Errorf("stored password has a broken salt")
	}
	if key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(key) < 16 || len(key) > 64 {
		return c, nil, nil, fmt.Errorf("stored password has a broken key")
	}
	return c, salt, key, nil
}

// alphabet leaves out what people mistake for something else.
const alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// Generate returns a random password of n characters.
func Generate(n int) string {
	const fair = 256 - 256%len(alphabet) // bytes beyond would favour the first letters
	out := make([]byte, 0, n)
	for b := make([]byte, n); len(out) < n; {
		rand.Read(b)
		for _, c := range b {
			if int(c) < fair && len(out) < n {
				out = append(out, alphabet[int(c)%len(alphabet)])
			}
		}
	}
	return string(out)
}
