package serving

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	// nameTime is the time for which it is cached what a name means.
	nameTime = 3 * time.Second
	// maxNames limits the names that are cached for one key, and those that a list has.
	maxNames = 1000
	maxName  = 63 // bytes
)

// names caches the deployments that names mean. Its zero value is empty.
type names struct {
	mu sync.Mutex
	m  map[string]meaning
}

type meaning struct {
	id uuid.UUID
	at time.Time
}

func (n *names) get(name string, now time.Time) (uuid.UUID, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x, ok := n.m[name]
	return x.id, ok && now.Sub(x.at) < nameTime
}

func (n *names) put(name string, id uuid.UUID, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.m == nil || len(n.m) >= maxNames {
		n.m = map[string]meaning{}
	}
	n.m[name] = meaning{id, now}
}

// forget forgets the names of a deployment, or all for no ID.
func (n *names) forget(id uuid.UUID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, x := range n.m {
		if id == uuid.Nil || x.id == id {
			delete(n.m, name)
		}
	}
}

// forget makes the next requests read again what the names of a deployment mean, or all names for no ID.
func (s *Service) forget(id uuid.UUID) {
	s.names.forget(id)
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	for _, h := range s.keys.byHash {
		h.found.forget(id)
	}
}

// known returns the cache of a key, or that of requests without a key.
func (s *Service) known(h *holder) *names {
	if h == nil {
		return &s.names
	}
	return h.found
}

// resolve returns the deployment that a name means for a key: the one of its user's domain that the user can see, or
// that is open. Without a key, it is the open deployment with this name if no other domain has one.
func (s *Service) resolve(ctx context.Context, h *holder, name string) (uuid.UUID, error) {
	if len(name) > maxName {
		return uuid.Nil, unknown(name)
	}
	cache := s.known(h)
	if id, ok := cache.get(name, time.Now()); ok {
		return id, nil
	}
	now := time.Now() // before the read, so that the answer is not older than the time says
	var id uuid.UUID
	err := s.read(ctx, func(ctx context.Context) (err error) {
		id, err = s.find(ctx, h, name)
		return err
	})
	if err != nil {
		return uuid.Nil, err
	}
	cache.put(name, id, now)
	return id, nil
}

func unknown(name string) error {
	return fmt.Errorf("the model %q does not exist, or the key may not use it: %w", name[:min(len(name), maxName)], errdefs.ErrNotFound)
}

// served matches the deployments that get requests.
func served() predicate.Deployment {
	return deployment.And(deployment.EndedAtIsNil(), deployment.StatusNEQ(deployment.StatusEnding))
}

func (s *Service) find(ctx context.Context, h *holder, name string) (uuid.UUID, error) {
	if h != nil {
		id, err := s.Client.Deployment.Query().Where(deployment.Name(name), served(), h.within()).OnlyID(viewer.With(ctx, h.viewer))
		switch {
		case err == nil:
			return id, nil
		case !ent.IsNotFound(err):
			return uuid.Nil, s.away(ctx, "look up a model", err)
		}
	}
	// Also a key for one deployment makes this statement, so that the time says nothing about the name.
	rows, err := s.Client.Deployment.Query().Where(deployment.Name(name), served(), deployment.Open(true)).
		Select(deployment.FieldID, deployment.FieldDomainID).All(viewer.SystemContext(ctx))
	switch {
	case err != nil:
		return uuid.Nil, s.away(ctx, "look up a model", err)
	case h != nil && h.DeploymentID != nil:
		return uuid.Nil, unknown(name)
	}
	for _, d := range rows {
		if len(rows) == 1 || h != nil && d.DomainID == h.viewer.Domain {
			return d.ID, nil
		}
	}
	return uuid.Nil, unknown(name)
}

// within matches the deployments that a key is for.
func (h *holder) within() predicate.Deployment {
	if h.DeploymentID != nil {
		return deployment.ID(*h.DeploymentID)
	}
	return deployment.DomainID(h.viewer.Domain)
}

// Names implements inference.Models.
func (s *Service) Names(ctx context.Context, secret string) ([]string, error) {
	h, err := s.holder(ctx, secret)
	if err != nil {
		return nil, err
	}
	list := []string{}
	err = s.read(ctx, func(ctx context.Context) error {
		if h != nil {
			seen, err := s.Client.Deployment.Query().Where(served(), h.within()).Order(deployment.ByName()).Limit(maxNames).
				Select(deployment.FieldName).Strings(viewer.With(ctx, h.viewer))
			if err != nil {
				return s.away(ctx, "list models", err)
			}
			list = append(list, seen...)
		}
		if h != nil && h.DeploymentID != nil {
			return nil
		}
		open, err := s.Client.Deployment.Query().Where(served(), deployment.Open(true)).Order(deployment.ByName()).Limit(maxNames).
			Select(deployment.FieldName, deployment.FieldDomainID).All(viewer.SystemContext(ctx))
		if err != nil {
			return s.away(ctx, "list models", err)
		}
		list = append(list, usable(open, h)...)
		return nil
	})
	slices.Sort(list)
	return slices.Compact(list), err
}

// usable returns the names of open deployments that are not ambiguous for a key.
func usable(open []*ent.Deployment, h *holder) []string {
	domains := map[string][]uuid.UUID{}
	for _, d := range open {
		domains[d.Name] = append(domains[d.Name], d.DomainID)
	}
	var list []string
	for name, in := range domains {
		if len(in) == 1 || h != nil && slices.Contains(in, h.viewer.Domain) {
			list = append(list, name)
		}
	}
	return list
}
