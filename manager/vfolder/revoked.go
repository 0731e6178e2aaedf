package vfolder

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// barredEvery is how soon the proxies hear of a change whose event was lost. A
// running upload ends within 5 s of its user. A look is one scan of the users: 1.5 ms
// of PostgreSQL's time for 10,000 of them, 15 ms for 100,000, which is 0.5 % of a core.
const barredEvery = 3 * time.Second

// lookEvery is how soon a right that was lost without an event is noticed.
const lookEvery = 30 * time.Second

// Guard tells the proxies of this manager who may not transfer any more and by which
// keys tickets are signed, whenever that changes, until ctx ends. Tickets outlive the
// rights of whom they were given to.
func (s *Service) Guard(ctx context.Context) {
	ctx = viewer.SystemContext(ctx)
	news := s.bus.Gather(ctx, []event.Topic{event.Login, event.Share, event.Vfolder})
	tick := time.NewTicker(barredEvery)
	defer tick.Stop()
	var told barred
	var keys [][]byte
	var looked time.Time
	look := true
	for {
		if look || time.Since(looked) > lookEvery {
			if err := s.revoke(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("revoke tickets", "error", err)
			}
			looked = time.Now()
		}
		list, err := s.barred(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("guard transfers", "error", err)
		}
		now := s.signer.PublicKeys()
		if err == nil && !(told.equal(list) && slices.EqualFunc(keys, now, slices.Equal)) {
			told, keys = list, now
			s.TellManagers()
		}
		look = false
		select {
		case <-ctx.Done():
			return
		case <-news.Wake():
			news.Take() // once for many
			look = true
		case <-tick.C:
		}
	}
}

// barred is whose tickets count no longer, as proxies name them.
type barred struct {
	users   [][]byte
	folders []*storagepb.BarredFolder
}

func (b barred) equal(o barred) bool {
	return slices.EqualFunc(b.users, o.users, slices.Equal) &&
		slices.EqualFunc(b.folders, o.folders, func(x, y *storagepb.BarredFolder) bool { return proto.Equal(x, y) })
}

func (s *Service) barred(ctx context.Context) (b barred, err error) {
	if b.users, err = s.barredUsers(ctx); err != nil {
		return b, err
	}
	b.folders, err = s.barredFolders(ctx)
	return b, err
}

// barredUsers lists who cannot log in. Who was in the list and is not a user any more
// stays in it: their tickets may live on.
func (s *Service) barredUsers(ctx context.Context) ([][]byte, error) {
	ids, err := s.client.User.Query().
		Where(user.Or(user.StatusNEQ(user.StatusActive), inClosedDomain)).Order(user.ByID()).IDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users who may not transfer: %w", err)
	}
	s.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(s.shut), func(id uuid.UUID) bool {
		_, still := slices.BinarySearchFunc(ids, id, compare)
		return still
	})
	s.mu.Unlock()
	if len(left) > 0 {
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
	}
	s.mu.Lock()
	s.shut = ids
	s.mu.Unlock()
	list := make([][]byte, len(ids))
	for i := range ids {
		list[i] = ids[i][:]
	}
	return list, nil
}

// inClosedDomain is true for users whose domain is not active: found once, not for
// each of them.
var inClosedDomain = predicate.User(func(s *sql.Selector) {
	t := sql.Table(domain.Table)
	s.Where(sql.In(s.C(user.FieldDomainID), sql.Select(t.C(domain.FieldID)).From(t).Where(sql.EQ(t.C(domain.FieldActive), false))))
})

// compare puts ids into the order that PostgreSQL has them in.
func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
