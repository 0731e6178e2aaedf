package ticket

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
)

// Life is the longest validity of a ticket.
const Life = 24 * time.Hour

// margin is the tolerated difference between the clocks of the readers of a ring.
const margin = time.Minute

// ringFile contains a key per line: the time from which it signs, in seconds since 1970, and the
// key's seed in base64. The last key whose time has come signs. The previous key stays valid until
// the last ticket that it may have signed has expired, and a key whose time has not come is valid
// already, so that proxies know it in time.
const ringFile = "ticket.keys"

// followEvery is the largest age of the keys that were read from the file.
const followEvery = time.Second

// Ring signs with the keys of a file, whose changes it follows. LoadRing creates one.
type Ring struct {
	path string

	mu   sync.Mutex
	keys []ringKey // in the order of their beginning
	read time.Time
}

type ringKey struct {
	since time.Time
	*Signer
}

// LoadRing reads the key ring in dir; the first call creates it.
func LoadRing(dir string) (*Ring, error) {
	path := filepath.Join(dir, ringFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		first, err := newRingKey(time.Unix(0, 0))
		if err != nil {
			return nil, err
		}
		// link(2) does not replace a file, so of two processes that start at once, one wins.
		if err := writeRing(path, []ringKey{first}, os.Link); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("keep %s: %w", path, err)
		}
	}
	keys, err := readRing(path)
	return &Ring{path: path, keys: keys, read: time.Now()}, err
}

func newRingKey(since time.Time) (ringKey, error) {
	key, err := NewKey()
	return ringKey{since, NewSigner(key)}, err
}

// Rotate adds a key to the ring in dir that signs from then on, and returns until when tickets of
// the previous key are valid. Keys that are no longer valid are dropped.
func Rotate(dir string, since time.Time) (until time.Time, err error) {
	path := filepath.Join(dir, ringFile)
	keys, err := readRing(path)
	if err != nil {
		return until, err
	}
	next, err := newRingKey(since)
	if err != nil {
		return until, err
	}
	if last := keys[len(keys)-1]; last.since.After(since) {
		return until, fmt.Errorf("there is already a key that begins to sign at %s: %w", last.since.Format(time.RFC3339), errdefs.ErrFailedPrecondition)
	}
	return ends(next), writeRing(path, counting(append(keys, next), time.Now()), os.Rename)
}

// Replace replaces all keys of the ring in dir by a new one, as after a theft: tickets of the other
// keys become invalid.
func Replace(dir string) error {
	path := filepath.Join(dir, ringFile)
	if _, err := readRing(path); err != nil {
		return err
	}
	next, err := newRingKey(time.Unix(0, 0))
	if err != nil {
		return err
	}
	return writeRing(path, []ringKey{next}, os.Rename)
}

// ends returns when tickets of the previous key become invalid.
func ends(next ringKey) time.Time { return next.since.Add(Life + margin) }

// counting returns the valid keys.
func counting(keys []ringKey, now time.Time) []ringKey {
	for len(keys) > 1 && now.After(ends(keys[1])) {
		keys = keys[1:]
	}
	return keys
}

// current returns the valid keys. If the file cannot be read, the known keys stay.
func (r *Ring) current() []ringKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := time.Now(); t.Sub(r.read).Abs() >= followEvery {
		r.read = t
		if keys, err := readRing(r.path); err == nil {
			r.keys = keys
		}
	}
	return counting(r.keys, time.Now())
}

// PublicKeys returns the valid public keys for a Verifier, 32 bytes each.
func (r *Ring) PublicKeys() [][]byte {
	var all [][]byte
	for _, k := range r.current() {
		all = append(all, k.PublicKey())
	}
	return all
}

// Sign returns the text of a ticket by the newest key that has begun.
func (r *Ring) Sign(c Claims) string {
	keys := r.current()
	by := keys[0]
	for _, k := range keys[1:] {
		if !k.since.After(time.Now()) {
			by = k
		}
	}
	return by.Sign(c)
}

func readRing(path string) (keys []ringKey, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read ticket keys: %w", err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		since, encoded, _ := strings.Cut(line, " ")
		sec, serr := strconv.ParseInt(since, 10, 64)
		seed, err := base64.RawStdEncoding.DecodeString(encoded)
		if err != nil || serr != nil || len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("%s: line %d is not a key: %w", path, i+1, errdefs.ErrFailedPrecondition)
		}
		keys = append(keys, ringKey{time.Unix(sec, 0), NewSigner(ed25519.NewKeyFromSeed(seed))})
	}
	return keys, nil
}

// writeRing replaces a ring atomically.
func writeRing(path string, keys []ringKey, place func(from, to string) error) error {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%d %s\n", k.since.Unix(), base64.RawStdEncoding.EncodeToString(k.key.Seed()))
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ticket-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(b.String())
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return place(tmp.Name(), path)
}
