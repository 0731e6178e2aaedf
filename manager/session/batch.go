package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

const (
	// maxBatch bounds the sessions that are stored in one transaction.
	maxBatch = 64
	// lanes is how many such transactions there are at once: while one waits for
	// the disk, the other has the processor.
	lanes = 2
	// gatherFor bounds how long a request waits for the end of such transactions before
	// it is checked. It would wait for them with its own, and requests that are alike
	// are checked together. A batch of 30 takes some 5 ms.
	gatherFor = 5 * time.Millisecond
)

// errAlone says that some wishes cannot be stored together.
var errAlone = errors.New("not together")

// batches gather what is to be stored while all lanes are taken.
type batches struct {
	mu      sync.Mutex
	running int
	open    *batch        // gathers
	waiting []*batch      // for a lane
	idle    chan struct{} // closed when all lanes are free; nil: no one waits for that
}

// batch is some wishes and, once done is closed, their sessions.
type batch struct {
	wishes []*wish
	made   []*ent.Session
	err    error
	turn   chan struct{} // closed when the first of them is to store it
	done   chan struct{}
}

// join adds a wish to a batch, as the i-th.
func (q *batches) join(w *wish) (b *batch, i int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b = q.open; b != nil && len(b.wishes) < maxBatch {
		b.wishes = append(b.wishes, w)
		return b, len(b.wishes) - 1
	}
	b = &batch{wishes: []*wish{w}, turn: make(chan struct{}), done: make(chan struct{})}
	q.open = b
	if q.running < lanes {
		q.running++
		close(b.turn)
	} else {
		q.waiting = append(q.waiting, b)
	}
	return b, 0
}

// gather waits until all lanes are free, for a moment at most, and lets requests that
// are about to come do so.
func (q *batches) gather(ctx context.Context) {
	q.mu.Lock()
	if q.running > 0 {
		if q.idle == nil {
			q.idle = make(chan struct{})
		}
		idle := q.idle
		q.mu.Unlock()
		wait := time.NewTimer(gatherFor)
		defer wait.Stop()
		select {
		case <-ctx.Done():
		case <-wait.C:
		case <-idle:
		}
	} else {
		q.mu.Unlock()
	}
	runtime.Gosched()
}

// seal ends the gathering of a batch.
func (q *batches) seal(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == b {
		q.open = nil
	}
}

// leave gives a lane to the next batch.
func (q *batches) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running--
		if q.running == 0 && q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
		return
	}
	close(q.waiting[0].turn)
	q.waiting = q.waiting[1:]
}

// storeBeside is store, in one transaction with others that come at the same time.
// What one of them is refused for does not touch the others: then each is stored
// alone. A request that has to be counted, or holds something, is alone at once.
func (s *Service) storeBeside(ctx context.Context, w *wish) (*ent.Session, error) {
	if len(w.mounts)+len(w.needed)+len(w.agents) > 0 || w.together != nil || len(w.locks()) > 0 || w.refused() {
		return s.store(ctx, w)
	}
	b, i := s.batches.join(w)
	if i == 0 {
		s.lead(ctx, b)
	}
	<-b.done
	switch {
	case b.err == nil:
		return b.made[i], nil
	case len(b.wishes) > 1:
		return s.store(ctx, w)
	}
	return nil, b.err
}

// lead stores a batch when its turn has come.
func (s *Service) lead(ctx context.Context, b *batch) {
	defer close(b.done)
	<-b.turn
	defer s.batches.leave()
	runtime.Gosched() // requests that are about to join do so: one alone costs as much as ten together
	s.batches.seal(b)
	if len(b.wishes) == 1 {
		var one *ent.Session
		if one, b.err = s.store(ctx, b.wishes[0]); b.err == nil {
			b.made = []*ent.Session{one}
		}
		return
	}
	b.made, b.err = s.storeAll(context.WithoutCancel(ctx), b.wishes)
}

// storeAll stores wishes in one transaction.
func (s *Service) storeAll(ctx context.Context, wishes []*wish) (made []*ent.Session, err error) {
	ctx = viewer.SystemContext(ctx) // they are of several viewers, who have been asked
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := holdMemberships(ctx, tx, wishes); err != nil {
			return err
		}
		made, err = s.insert(ctx, tx, wishes)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range made {
		made[i] = made[i].Unwrap()
	}
	return made, nil
}

// holdMemberships is holdMembership for several.
func holdMemberships(ctx context.Context, tx *ent.Tx, wishes []*wish) error {
	type member struct{ owner, project uuid.UUID }
	want := map[member]bool{}
	var any []predicate.Membership
	for _, w := range wishes {
		if m := (member{w.owner, w.project}); w.member && !want[m] {
			want[m] = true
			any = append(any, membership.And(membership.UserID(m.owner), membership.ProjectID(m.project)))
		}
	}
	if len(any) == 0 {
		return nil
	}
	held, err := tx.Membership.Query().Where(membership.Or(any...),
		membership.HasUserWith(user.StatusEQ(user.StatusActive)), membership.HasProjectWith(project.Active(true))).
		Order(membership.ByID()).ForShare().IDs(ctx)
	if err != nil {
		return fmt.Errorf("hold memberships: %w", err)
	}
	if len(held) < len(want) {
		return errAlone
	}
	return nil
}
