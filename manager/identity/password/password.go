// Package password hashes and checks passwords with argon2id, stored as PHC strings, so that
// the cost can grow while old hashes stay valid.
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

// MinLength is a number of characters, MaxLength a number of bytes.
const (
	MinLength = 10
	MaxLength = 128
)

// Cost is the cost of one hash.
type Cost struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultCost is OWASP's configuration with the least memory, plus one pass: 19 MiB, so that
// many concurrent logins do not exhaust the memory.
func DefaultCost() Cost { return Cost{Memory: 19 * 1024, Time: 3, Threads: 1} }

// most is the highest cost of a stored hash that is accepted, so that a row cannot block the
// manager.
var most = Cost{Memory: 256 * 1024, Time: 16, Threads: 16}

// parallel limits concurrent hashing, and so the memory that it needs.
const parallel = 4

// giveBackAfter is how long the memory of a hash is kept for the next one. Go keeps freed
// memory for minutes, so an idle manager would use twice the memory that it needs.
const giveBackAfter = 2 * time.Second

const (
	saltLength = 16
	keyLength  = 32
)

// Hasher creates and checks hashes, a few concurrently.
type Hasher struct {
	cost  Cost
	slots *semaphore.Weighted
	dummy string
	// giving is true while memory is scheduled to be returned.
	giving atomic.Bool
}

// NewHasher returns a Hasher with a cost for new hashes.
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

// Check reports whether p is the password of hash, and whether the hash has another cost than
// new ones and should be replaced. An empty hash, of a user that does not exist, takes the
// same time and never matches.
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

// release lets the next hash begin, and schedules the return of memory to the system, at most
// once within giveBackAfter.
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
		return c, nil, nil, fmt.Errorf("stored password is not an argon2id hash")
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

// alphabet leaves out characters that are easily confused.
const alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// Generate returns a random password of n characters.
func Generate(n int) string {
	const fair = 256 - 256%len(alphabet) // larger bytes would make the first letters more likely
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
