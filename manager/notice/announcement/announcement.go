// Package announcement keeps the texts that administrators show to people in the page and in the client.
package announcement

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/announcement"
	"github.com/berthhq/berth/ent/announcementdismissal"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

const (
	maxText          = 4000 // characters
	maxAnnouncements = 100
)

// Service keeps announcements.
type Service struct{ Client *ent.Client }

// CreateAnnouncementInput describes a new announcement.
type CreateAnnouncementInput struct {
	Text        string
	Severity    *noticekind.Severity
	Audience    *announcement.Audience
	ScopeID     *uuid.UUID
	Dismissable *bool
	StartsAt    *time.Time
	EndsAt      *time.Time
}

// UpdateAnnouncementInput changes the fields that are set.
type UpdateAnnouncementInput struct {
	ID          uuid.UUID
	Text        *string
	Severity    *noticekind.Severity
	Dismissable *bool
	StartsAt    *time.Time
	EndsAt      *time.Time
	ClearEndsAt *bool
}

// DeleteAnnouncementInput names one.
type DeleteAnnouncementInput struct{ ID uuid.UUID }

// DismissAnnouncementInput names one.
type DismissAnnouncementInput struct{ ID uuid.UUID }

// AnnouncementPayload is the changed announcement.
type AnnouncementPayload struct{ Announcement *ent.Announcement }

// DeleteAnnouncementPayload names the deleted announcement.
type DeleteAnnouncementPayload struct{ ID uuid.UUID }

// DismissAnnouncementPayload names the hidden announcement.
type DismissAnnouncementPayload struct{ ID uuid.UUID }

// Current returns the announcements that the viewer should see now, the most severe first.
func (s *Service) Current(ctx context.Context) ([]*ent.Announcement, error) {
	v := viewer.From(ctx)
	now := clock.Now()
	hidden, err := s.Client.AnnouncementDismissal.Query().Where(announcementdismissal.UserID(v.User)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read hidden announcements: %w", err)
	}
	ids := make([]uuid.UUID, len(hidden))
	for i, h := range hidden {
		ids[i] = h.AnnouncementID
	}
	// Superadmins can read all: they are shown those to everyone, to administrators, and to their own domain and projects.
	own := announcement.Or(announcement.AudienceIn(announcement.AudienceEveryone, announcement.AudienceAdmins),
		announcement.ScopeIDIn(append([]uuid.UUID{v.Domain}, v.Projects...)...))
	list, err := s.Client.Announcement.Query().Where(own, announcement.StartsAtLTE(now), announcement.Or(announcement.EndsAtIsNil(), announcement.EndsAtGT(now)),
		announcement.Or(announcement.IDNotIn(ids...), announcement.Dismissable(false))).
		Order(announcement.ByStartsAt(sql.OrderDesc())).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read announcements: %w", err)
	}
	var out []*ent.Announcement
	for _, severity := range []noticekind.Severity{noticekind.Error, noticekind.Warning, noticekind.Info} {
		for _, a := range list {
			if a.Severity == severity {
				out = append(out, a)
			}
		}
	}
	return out, nil
}

// administers returns an error for a viewer who is not a superadmin.
func administers(ctx context.Context) error {
	v, err := permit.Writer(ctx)
	if err == nil && !v.Superadmin() {
		err = problem.Forbidden("only a superadmin can change announcements")
	}
	return err
}

// CreateAnnouncement stores an announcement.
func (s *Service) CreateAnnouncement(ctx context.Context, in CreateAnnouncementInput) (*AnnouncementPayload, error) {
	if err := administers(ctx); err != nil {
		return nil, err
	}
	ctx = viewer.SystemContext(ctx)
	starts := clock.Now()
	if in.StartsAt != nil {
		starts = in.StartsAt.UTC()
	}
	if err := s.check(ctx, &in.Text, starts, in.EndsAt); err != nil {
		return nil, err
	}
	audience := announcement.AudienceEveryone
	if in.Audience != nil {
		audience = *in.Audience
	}
	if err := s.checkScope(ctx, audience, in.ScopeID); err != nil {
		return nil, err
	}
	var row *ent.Announcement
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "announcements"); err != nil {
			return err
		}
		n, err := tx.Announcement.Query().Count(ctx)
		if err != nil {
			return fmt.Errorf("count announcements: %w", err)
		}
		if n >= maxAnnouncements {
			return problem.Exhausted("there are %d announcements, delete one first", n).WithField("text").WithLimit(fmt.Sprint(maxAnnouncements))
		}
		c := tx.Announcement.Create().SetText(in.Text).SetAudience(audience).SetNillableScopeID(in.ScopeID).SetNillableSeverity(in.Severity).
			SetNillableDismissable(in.Dismissable).SetStartsAt(starts).SetNillableEndsAt(in.EndsAt)
		if row, err = c.Save(ctx); err != nil {
			return fmt.Errorf("store announcement: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &AnnouncementPayload{row.Unwrap()}, nil
}

func (s *Service) check(ctx context.Context, text *string, starts time.Time, ends *time.Time) error {
	if text != nil {
		if n := utf8.RuneCountInString(*text); strings.TrimSpace(*text) == "" || n > maxText || !utf8.ValidString(*text) || strings.ContainsRune(*text, 0) {
			return problem.Invalid("text", "must have 1 to %d characters", maxText).WithLimit(fmt.Sprint(maxText))
		}
	}
	if ends != nil && !ends.After(starts) {
		return problem.Invalid("endsAt", "must be after startsAt, which is %s", starts.Format(time.RFC3339))
	}
	return ctx.Err()
}

func (s *Service) checkScope(ctx context.Context, audience announcement.Audience, scope *uuid.UUID) error {
	scoped := audience == announcement.AudienceDomain || audience == announcement.AudienceProject
	if scoped != (scope != nil) {
		return problem.Invalid("scopeID", "must be the domain or the project of the audiences DOMAIN and PROJECT, and absent for others")
	}
	if !scoped {
		return nil
	}
	if audience == announcement.AudienceDomain {
		_, err := s.Client.Domain.Get(ctx, *scope)
		return permit.Missing(err, "domain", "scopeID")
	}
	_, err := s.Client.Project.Get(ctx, *scope)
	return permit.Missing(err, "project", "scopeID")
}

// UpdateAnnouncement changes an announcement. A new text is shown again to people who hid the old one.
func (s *Service) UpdateAnnouncement(ctx context.Context, in UpdateAnnouncementInput) (*AnnouncementPayload, error) {
	if err := administers(ctx); err != nil {
		return nil, err
	}
	ctx = viewer.SystemContext(ctx)
	var row *ent.Announcement
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		old, err := tx.Announcement.Query().Where(announcement.ID(in.ID)).ForUpdate().Only(ctx)
		if err != nil {
			return permit.Missing(err, "announcement", "id")
		}
		starts, ends := old.StartsAt, old.EndsAt
		if in.StartsAt != nil {
			starts = in.StartsAt.UTC()
		}
		if in.EndsAt != nil {
			ends = in.EndsAt
		}
		up := old.Update().SetNillableText(in.Text).SetNillableSeverity(in.Severity).SetNillableDismissable(in.Dismissable).SetStartsAt(starts).SetNillableEndsAt(in.EndsAt)
		if in.ClearEndsAt != nil && *in.ClearEndsAt {
			if in.EndsAt != nil {
				return problem.Invalid("clearEndsAt", "cannot be true together with endsAt")
			}
			ends = nil
			up.ClearEndsAt()
		}
		if err := s.check(ctx, in.Text, starts, ends); err != nil {
			return err
		}
		if in.Text != nil && *in.Text != old.Text {
			if _, err := tx.AnnouncementDismissal.Delete().Where(announcementdismissal.AnnouncementID(in.ID)).Exec(ctx); err != nil {
				return fmt.Errorf("show the announcement again: %w", err)
			}
		}
		row, err = up.Save(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &AnnouncementPayload{row.Unwrap()}, nil
}

// DeleteAnnouncement deletes an announcement.
func (s *Service) DeleteAnnouncement(ctx context.Context, in DeleteAnnouncementInput) (*DeleteAnnouncementPayload, error) {
	if err := administers(ctx); err != nil {
		return nil, err
	}
	ctx = viewer.SystemContext(ctx)
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if _, err := tx.AnnouncementDismissal.Delete().Where(announcementdismissal.AnnouncementID(in.ID)).Exec(ctx); err != nil {
			return fmt.Errorf("delete who hid it: %w", err)
		}
		return tx.Announcement.DeleteOneID(in.ID).Exec(ctx)
	})
	if err != nil {
		return nil, permit.Missing(err, "announcement", "id")
	}
	return &DeleteAnnouncementPayload{in.ID}, nil
}

// DismissAnnouncement hides an announcement from the viewer.
func (s *Service) DismissAnnouncement(ctx context.Context, in DismissAnnouncementInput) (*DismissAnnouncementPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	a, err := s.Client.Announcement.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "announcement", "id")
	}
	if !a.Dismissable {
		return nil, problem.Precondition("the announcement cannot be hidden").WithField("id")
	}
	// Only the columns are needed: a second one changes nothing.
	_, err = s.Client.ExecContext(viewer.SystemContext(ctx), `INSERT INTO announcement_dismissals (id, announcement_id, user_id) VALUES ($1, $2, $3)
ON CONFLICT (user_id, announcement_id) DO NOTHING`, uuid.New(), a.ID, v.User)
	if err != nil {
		return nil, fmt.Errorf("hide the announcement: %w", err)
	}
	return &DismissAnnouncementPayload{a.ID}, nil
}
