package vfolder

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
)

// barredEvery is how soon the proxies hear of a change whose event was lost. A
// running upload ends within 5 s of its user.
const barredEvery = 3 * time.Second

// Guard tells the proxies of this manager who may not transfer any more, whenever
// that changes, until ctx ends. Tickets outlive the rights of whom they were
// given to.
func (s *Service) Guard(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	events := s.bus.Subscribe(ctx, event.Login)
	tick := time.NewTicker(barredEvery)
	defer tick.Stop()
	var told [][]byte
	for {
		list, err := s.barred(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("guard transfers", "error", err)
		}
		if err == nil && !slices.EqualFunc(told, list, slices.Equal) {
			told = list
			s.TellManagers()
		}
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				return
			}
			for len(events) > 0 { // once for many
				<-events
			}
		case <-tick.C:
		}
	}
}

// barred lists who cannot log in, as proxies name them. Who was in the list and
// is no user any more stays in it: his tickets may live on.
func (s *Service) barred(ctx context.Context) ([][]byte, error) {
	ids, err := s.client.User.Query().
		Where(user.Or(user.StatusNEQ(user.StatusActive), user.HasDomainWith(domain.Active(false)))).Order(user.ByID()).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users who may not transfer: %w", err)
	}
	s.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(s.shut), func(id uuid.UUID) bool {
		_, still := slices.BinarySearchFunc(ids, id, compare)
		return still
	})
	s.mu.Unlock()
	back, err := s.client.User.Query().Where(user.IDIn(left...)).Order(user.ByID()).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users who may transfer again: %w", err)
	}
	for _, id := range left {
		if _, is := slices.BinarySearchFunc(back, id, compare); !is {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compare)
	s.mu.Lock()
	s.shut = ids
	s.mu.Unlock()
	list := make([][]byte, len(ids))
	for i := range ids {
		list[i] = ids[i][:]
	}
	return list, nil
}

// compare puts ids into the order that PostgreSQL has them in.
func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
