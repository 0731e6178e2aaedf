package ticket

import (
	"crypto/sha256"
	"sync"
)

// generation is the number of tickets that are remembered before those that were not used since are
// dropped: two generations with paths of 4 KiB, the longest, take 8 MiB.
const generation = 1024

// verified caches the claims of tickets with a valid signature, by the digest of their text.
// Ranges, chunks of an upload and repeated reads of a file need no second check of the signature,
// which is half the cost of a small download. It belongs to one set of keys and is dropped with it.
type verified struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]payload
}

func (v *verified) get(token string) (payload, bool) {
	sum := sha256.Sum256([]byte(token))
	v.mu.Lock()
	defer v.mu.Unlock()
	p, known := v.young[sum]
	if !known {
		if p, known = v.old[sum]; known {
			v.put(sum, p)
		}
	}
	return p, known
}

func (v *verified) add(token string, p payload) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.put(sha256.Sum256([]byte(token)), p)
}

func (v *verified) put(sum [sha256.Size]byte, p payload) {
	if len(v.young) >= generation || v.young == nil {
		v.young, v.old = make(map[[sha256.Size]byte]payload), v.young
	}
	v.young[sum] = p
}
