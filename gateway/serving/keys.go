package serving

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentkey"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/deployment/key"
)

const (
	// recheckEvery is the time after which a revoked key is refused although its event was lost.
	recheckEvery = time.Second
	// keyIdle is the time after which a key without requests is forgotten, and readable the time for which the
	// keys of a gateway stay valid while the database cannot be reached.
	keyIdle  = time.Minute
	readable = time.Minute
	maxKey   = 100 // bytes
	// maxCached limits the keys that a gateway knows.
	maxCached = 20_000
)

type hash [32]byte

// holder is a valid key with the permissions of its user. It does not change, the times excepted.
type holder struct {
	*ent.DeploymentKey
	viewer *viewer.Viewer
	found  *names // what the names of models mean for the key
	used   *atomic.Int64
	read   time.Time
}

// keys caches the keys of recent requests.
type keys struct {
	mu     sync.Mutex
	byHash map[hash]*holder
}

func (k *keys) get(h hash) *holder {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byHash[h]
}

func (k *keys) put(h hash, x *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.byHash) < maxCached || k.byHash[h] != nil {
		k.byHash[h] = x
	}
}

// tenantOf separates what is known of prompts by user, and without a key by network.
func tenantOf(ctx context.Context, h *holder) string {
	if h == nil {
		return "network " + auth.NetworkFrom(ctx)
	}
	return h.UserID.String()
}

// holder returns the key of a request; nil if the request has none.
func (s *Service) holder(ctx context.Context, secret string) (*holder, error) {
	if secret == "" {
		return nil, nil
	}
	if !strings.HasPrefix(secret, key.Prefix) || len(secret) > maxKey {
		return nil, errInvalidKey
	}
	now := clock.Now()
	sum := hash(key.Hash(secret))
	x := s.keys.get(sum)
	if x == nil || now.Sub(x.read) > readable {
		if err := s.strangers.check(ctx, sum, now); err != nil {
			return nil, err
		}
		var err error
		if x, err = s.lookUp(ctx, sum); err != nil {
			if errdefs.IsUnauthorized(err) {
				s.strangers.add(ctx, sum, now)
			}
			return nil, err
		}
		s.keys.put(sum, x)
	}
	if x.ExpiresAt != nil && !x.ExpiresAt.After(now) {
		return nil, errInvalidKey
	}
	x.used.Store(now.Unix())
	return x, nil
}

var errInvalidKey = fmt.Errorf("the key is not valid: %w", errdefs.ErrUnauthenticated)

// lookUp reads a key from the database.
func (s *Service) lookUp(ctx context.Context, sum hash) (x *holder, err error) {
	err = s.read(viewer.SystemContext(ctx), func(ctx context.Context) error {
		row, err := s.Client.DeploymentKey.Query().Where(deploymentkey.Hash(sum[:])).Only(ctx)
		if ent.IsNotFound(err) {
			return errInvalidKey
		}
		if err != nil {
			return s.away(ctx, "look up the key of a model", err)
		}
		rights, err := s.Users.Rights(ctx, []uuid.UUID{row.UserID})
		if err != nil {
			return s.away(ctx, "read the rights of a key's user", err)
		}
		if x = holderOf(row, rights, nil); x == nil {
			return errInvalidKey
		}
		return nil
	})
	return x, err
}

// holderOf returns a key with the rights of its user; nil if it is not valid. last is what was known before.
func holderOf(row *ent.DeploymentKey, rights map[uuid.UUID]*viewer.Viewer, last *holder) *holder {
	v := rights[row.UserID]
	if row.RevokedAt != nil || v == nil {
		return nil
	}
	x := &holder{DeploymentKey: row, viewer: v, found: &names{}, used: &atomic.Int64{}, read: clock.Now()}
	if last != nil {
		x.used = last.used
		if reflect.DeepEqual(last.viewer, v) {
			x.found = last.found
		}
	}
	return x
}

// recheck reads cached keys again: those with an ID or a user with this ID, or all. Keys that were not used for
// some time are forgotten. While the database cannot be reached, keys stay valid for a minute.
func (s *Service) recheck(ctx context.Context, about uuid.UUID) {
	list := s.keys.list(about)
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(viewer.SystemContext(ctx), readTime)
	defer cancel()
	ids, users := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	for _, x := range list {
		ids[x.ID], users[x.UserID] = true, true
	}
	rows, err := s.Client.DeploymentKey.Query().Where(deploymentkey.IDIn(slices.Collect(maps.Keys(ids))...)).All(ctx)
	var rights map[uuid.UUID]*viewer.Viewer
	if err == nil {
		rights, err = s.Users.Rights(ctx, slices.Collect(maps.Keys(users)))
	}
	if err != nil {
		if ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "check the keys of models", "error", err)
		}
		return
	}
	current := map[uuid.UUID]*ent.DeploymentKey{}
	for _, row := range rows {
		current[row.ID] = row
	}
	s.keys.replace(list, func(last *holder) *holder {
		if row := current[last.ID]; row != nil {
			return holderOf(row, rights, last)
		}
		return nil
	})
}

// list returns the cached keys with an ID or a user with this ID, or all for no ID, and forgets idle ones.
func (k *keys) list(about uuid.UUID) map[hash]*holder {
	k.mu.Lock()
	defer k.mu.Unlock()
	idle := clock.Now().Add(-keyIdle).Unix()
	out := map[hash]*holder{}
	for h, x := range k.byHash {
		switch {
		case about == uuid.Nil && x.used.Load() < idle:
			delete(k.byHash, h)
		case about == uuid.Nil || x.ID == about || x.UserID == about:
			out[h] = x
		}
	}
	return out
}

// replace replaces keys by what is known of them now; nil: the key is not valid.
func (k *keys) replace(list map[hash]*holder, by func(*holder) *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h, last := range list {
		switch next := by(last); {
		case k.byHash[h] == nil:
		case next == nil:
			delete(k.byHash, h)
		default:
			k.byHash[h] = next
		}
	}
}
