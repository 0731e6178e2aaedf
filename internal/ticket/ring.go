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

// Life is the longest that a ticket is good for.
const Life = 24 * time.Hour

// margin is how far the clocks of those who read one ring may be apart.
const margin = time.Minute

// ringFile holds keys, a line each: since when it signs, in seconds since 1970, and the
// key's seed in base64. The last one that has begun signs. One before it counts until
// the last ticket that it may have signed has expired, and one that is yet to begin
// counts already, so that proxies know it when it does.
const ringFile = "ticket.keys"

// followEvery is how old what was read of the file may be.
const followEvery = time.Second

// Ring signs with the keys of a file, which it follows. Make it with LoadRing.
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

// LoadRing reads the key ring in dir; the first time it makes one.
func LoadRing(dir string) (*Ring, error) {
	path := filepath.Join(dir, ringFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		first, err := newRingKey(time.Unix(0, 0))
		if err != nil {
			return nil, err
		}
		// A link is not made where there is a file: of two who start at once one wins.
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

// Rotate adds a key to the ring in dir that signs from then on, and returns until when
// tickets of the one before count. What counts no longer is dropped.
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
		return until, fmt.Errorf("a key is there already that begins to sign at %s: %w", last.since.Format(time.RFC3339), errdefs.ErrFailedPrecondition)
	}
	return ends(next), writeRing(path, counting(append(keys, next), time.Now()), os.Rename)
}

// Replace leaves a new key alone in the ring in dir: tickets of all others count no
// longer, as when one was stolen.
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

// ends is when tickets of the key before one count no longer.
func ends(next ringKey) time.Time { return next.since.Add(Life + margin) }

// counting are the keys whose tickets count.
func counting(keys []ringKey, now time.Time) []ringKey {
	for len(keys) > 1 && now.After(ends(keys[1])) {
		keys = keys[1:]
	}
	return keys
}

// current returns the keys that count. A file that cannot be read changes nothing.
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

// PublicKeys are what a Verifier needs to check the tickets that count, 32 bytes each.
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
			return nil, fmt.Errorf("%s: line %d is no key: %w", path, i+1, errdefs.ErrFailedPrecondition)
		}
		keys = append(keys, ringKey{time.Unix(sec, 0), NewSigner(ed25519.NewKeyFromSeed(seed))})
	}
	return keys, nil
}

// writeRing puts a ring in its place, all or nothing.
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
