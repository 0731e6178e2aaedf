package leader

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthhq/berth/internal/discovery"
)

const (
	// ManagersKey is below which the live managers announce their addresses.
	ManagersKey = "/berth/managers/"
	// versionsKey is below which they announce their versions. It is apart from the
	// addresses, since managers of older versions take a value there for an address.
	versionsKey = "/berth/versions/"
)

// ClusterManager is a manager that is alive.
type ClusterManager struct {
	ID      string
	Address string // where nodes reach it
	Version string // empty: too old to say it
	Leads   bool
}

// Announce keeps the address and the version of this manager where others find them, until
// ctx ends.
func (s *Service) Announce(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = discovery.Announce(ctx, s.Etcd, versionsKey, s.ID, s.Version)
	}()
	_ = discovery.Announce(ctx, s.Etcd, ManagersKey, s.ID, s.Address)
	<-done
}

// Managers lists the managers that are alive, by address. It returns an error if etcd does
// not answer in time.
func (s *Service) Managers(ctx context.Context) ([]*ClusterManager, error) {
	leads, err := s.Current(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	addresses, err := discovery.List(ctx, s.Etcd, ManagersKey)
	if err != nil {
		return nil, err
	}
	versions, err := discovery.List(ctx, s.Etcd, versionsKey)
	if err != nil {
		return nil, err
	}
	all := []*ClusterManager{}
	for id, address := range addresses {
		all = append(all, &ClusterManager{ID: id, Address: address, Version: versions[id], Leads: leads != nil && leads.ID == id})
	}
	slices.SortFunc(all, func(a, b *ClusterManager) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}
