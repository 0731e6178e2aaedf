package leader

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthhq/berth/internal/discovery"
)

const (
	// ManagersKey is the prefix of the addresses of live managers.
	ManagersKey = "/berth/managers/"
	// versionsKey is the prefix of the managers' versions. It differs from that of the addresses,
	// because older managers read every value there as an address.
	versionsKey = "/berth/versions/"
)

// ClusterManager is a live manager.
type ClusterManager struct {
	ID      string
	Address string // for nodes
	Version string // empty for versions that do not report it
	Leads   bool
}

// Announce publishes the address and the version of this manager until ctx ends.
func (s *Service) Announce(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = discovery.Announce(ctx, s.Etcd, versionsKey, s.ID, s.Version)
	}()
	_ = discovery.Announce(ctx, s.Etcd, ManagersKey, s.ID, s.Address)
	<-done
}

// Managers returns the live managers, ordered by address. It returns an error if etcd does not
// answer in time.
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
