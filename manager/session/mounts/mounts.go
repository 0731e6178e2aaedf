// Package mounts makes the mounts of live sessions follow the permissions of their owners on folders. The
// rows have the wanted state, and the agents are asked until they have confirmed it.
package mounts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/session/history"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/vfolder"
)

// mountsEvery is the interval at which mounts are compared with permissions, for events that were
// lost.
const mountsEvery = 30 * time.Second

// Codes of the entries about a folder in the history of a session.
const (
	codeFolderReadOnly = "folder_read_only"
	codeFolderWritable = "folder_writable"
	codeFolderRevoked  = "folder_revoked"
	codeFolderReturned = "folder_returned"
)

const (
	// retryAfter is the pause before a failed check or an unconfirmed change is tried again.
	retryAfter = time.Second
	// errorPause is the pause after an error of an agent that time does not solve.
	errorPause = 5 * time.Second
)

// Agents reaches the worker machines.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
}

// Volumes returns what users are not allowed to do with folders, and the grants on volumes.
type Volumes interface {
	GrantsOf(ctx context.Context, volumes []uuid.UUID) (map[uuid.UUID][]*ent.VolumeGrant, error)
	Lost(ctx context.Context, uses []vfolder.Use) ([]vfolder.Loss, error)
}

// Keeper compares the mounts of sessions with permissions and changes them.
type Keeper struct {
	Client  *ent.Client
	Bus     *event.Bus
	Agents  Agents
	Volumes Volumes
	Logger  *slog.Logger
}

// Follow adapts the mounts of live sessions to the permissions of their owners, until ctx
// ends.
func (s *Keeper) Follow(ctx context.Context, epoch int64) {
	news := s.Bus.Gather(ctx, []event.Topic{event.Share, event.Login, event.Vfolder})
	settling := &settling{s: s, epoch: epoch, busy: map[uuid.UUID]bool{}}
	defer settling.running.Wait()
	var last time.Time
	due := true
	for {
		if due || time.Since(last) > mountsEvery {
			last = time.Now()
			if err := s.Check(ctx, epoch); err != nil && ctx.Err() == nil && !errors.Is(err, errdefs.ErrAborted) {
				s.Logger.Error("compare mounts with permissions", "error", err)
				last = time.Time{}
			}
		}
		wait := mountsEvery
		if open, err := settling.begin(ctx); open || err != nil {
			wait = retryAfter
			if err != nil && ctx.Err() == nil {
				s.Logger.Error("read mounts to change", "error", err)
			}
		}
		if last.IsZero() {
			wait = retryAfter
		}
		due = false
		select {
		case <-ctx.Done():
			return
		case <-news.Wake():
			news.Take() // once for many
			due = true
		case <-time.After(wait):
		}
	}
}

// granted matches mounts of live sessions whose folder does not belong to the session's owner.
var granted = predicate.SessionMount(func(s *sql.Selector) {
	s.Where(sql.P(func(b *sql.Builder) {
		b.WriteString("EXISTS (SELECT FROM sessions AS its JOIN vfolders AS f ON f.id = " + s.C(sessionmount.FieldVfolderID) +
			" WHERE its.id = " + s.C(sessionmount.FieldSessionID) + " AND its.terminated_at IS NULL AND f.owner_id IS DISTINCT FROM its.owner_id)")
	}))
})

// Check makes the rows of mounts agree with the current permissions.
func (s *Keeper) Check(ctx context.Context, epoch int64, which ...predicate.SessionMount) error {
	all, err := s.Client.SessionMount.Query().Where(granted).Where(which...).
		// A running session does not get a folder back that it has lost.
		Where(sessionmount.Or(sessionmount.RevokedAtIsNil(), sessionmount.HasSessionWith(session.TerminatedAtIsNil(), session.StatusEQ(lifecycle.Pending)))).
		WithSession().WithVfolder(func(q *ent.VfolderQuery) { q.WithQuotaScope() }).
		Order(sessionmount.BySessionID(), sessionmount.ByID()).All(ctx)
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	if len(all) == 0 {
		return nil
	}
	uses := make([]vfolder.Use, 0, 2*len(all))
	for _, m := range all {
		use := vfolder.Use{User: m.Edges.Session.OwnerID, Folder: m.VfolderID}
		uses = append(uses, use)
		use.Write = true
		uses = append(uses, use)
	}
	lost, err := s.Volumes.Lost(ctx, uses)
	if err != nil {
		return fmt.Errorf("look up permissions on folders: %w", err)
	}
	var changes []mountChange
	for i, m := range all {
		if c, changed := compare(m, lost[2*i], lost[2*i+1]); changed {
			changes = append(changes, c)
		}
	}
	if changes, err = s.promotable(ctx, changes); err != nil {
		return err
	}
	for len(changes) > 0 {
		n := slices.IndexFunc(changes, func(c mountChange) bool { return c.row.SessionID != changes[0].row.SessionID })
		if n < 0 {
			n = len(changes)
		}
		if err := s.changeMounts(ctx, epoch, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// mountChange is a mount that differs from what its owner can do.
type mountChange struct {
	row               *ent.SessionMount
	readOnly, revoked bool
	why               vfolder.Loss // the permission to read was lost or regained
}

// compare sets the mount as the owner's permissions to read and write the folder require, and
// reports whether it differs from before.
func compare(m *ent.SessionMount, unreadable, unwritable vfolder.Loss) (mountChange, bool) {
	c := mountChange{row: m, readOnly: m.ReadOnlyWanted || unwritable != "", revoked: unreadable != "", why: unreadable}
	if c.revoked {
		c.readOnly = m.ReadOnly
	}
	return c, c.readOnly != m.ReadOnly || c.revoked != (m.RevokedAt != nil)
}

// promotable leaves out mounts that would become writable on a volume where their owner cannot
// write.
func (s *Keeper) promotable(ctx context.Context, changes []mountChange) (kept []mountChange, err error) {
	var volumes []uuid.UUID
	for _, c := range changes {
		volumes = append(volumes, c.row.Edges.Vfolder.Edges.QuotaScope.VolumeID)
	}
	grants, err := s.Volumes.GrantsOf(ctx, volumes)
	if err != nil {
		return nil, fmt.Errorf("read grants of volumes: %w", err)
	}
	for i, c := range changes {
		f, project := c.row.Edges.Vfolder, uuid.Nil
		if f.ProjectID != nil {
			project = *f.ProjectID
		}
		mayFill := slices.Contains(vfolder.Union(grants[volumes[i]], f.DomainID, project, c.row.Edges.Session.OwnerID), access.VolumeUpload)
		if !c.readOnly && c.row.ReadOnly && !mayFill {
			if c.readOnly = true; c.revoked == (c.row.RevokedAt != nil) {
				continue
			}
		}
		kept = append(kept, c)
	}
	return kept, nil
}

// changeMounts stores changes of one session's mounts and notifies its owner.
func (s *Keeper) changeMounts(ctx context.Context, epoch int64, changes []mountChange) error {
	sess := changes[0].row.Edges.Session
	changed := false
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := leader.Fence(ctx, tx, epoch); err != nil {
			return err
		}
		// The start of the session reads the mounts after its state has changed.
		n, err := tx.Session.Update().Where(session.ID(sess.ID), session.StatusEQ(sess.Status)).AddVersion(1).Save(ctx)
		if err != nil || n == 0 { // its state has changed; the next pass checks it again
			return err
		}
		changed = true
		var told []history.Entry
		for _, c := range changes {
			u := tx.SessionMount.UpdateOneID(c.row.ID).SetReadOnly(c.readOnly).SetSettled(sess.Status == lifecycle.Pending)
			switch {
			case !c.revoked:
				u.ClearRevokedAt()
			case c.row.RevokedAt == nil:
				u.SetRevokedAt(clock.Now())
			}
			if err := u.Exec(ctx); err != nil {
				return err
			}
			code, text := c.describe(sess.Status == lifecycle.Pending)
			told = append(told, history.Entry{Session: sess.ID, Phase: history.Phase(sess.Status), From: &sess.Status, To: sess.Status,
				Result: sessionevent.ResultInfo, Attempt: sess.Attempt, Code: code, Message: text})
		}
		return history.Record(ctx, tx, told...)
	})
	if err != nil {
		return fmt.Errorf("change mounts of session %s: %w", sess.ID, err)
	}
	if !changed {
		return fmt.Errorf("session %s is no longer %s: %w", sess.ID, sess.Status, errdefs.ErrAborted)
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Session, ID: sess.ID})
	return nil
}

const sessionOwner = "the session's owner"

// describe returns the message about a change for the owner of the session.
func (c mountChange) describe(waits bool) (code, text string) {
	folder := "folder " + c.row.Edges.Vfolder.Name
	switch {
	case c.revoked && waits:
		return codeFolderRevoked, folder + " " + c.why.Of(sessionOwner) + ": the session starts without " + c.row.Target
	case c.revoked:
		return codeFolderRevoked, folder + " " + c.why.Of(sessionOwner) + ": " + c.row.Target + " is empty"
	case c.row.RevokedAt != nil:
		return codeFolderReturned, folder + " is available to the session's owner again: the session starts with " + c.row.Target
	case c.readOnly:
		return codeFolderReadOnly, folder + " can only be read by the session's owner: " + c.row.Target + " is read-only"
	}
	return codeFolderWritable, folder + " can be written by the session's owner: " + c.row.Target + " is writable"
}
