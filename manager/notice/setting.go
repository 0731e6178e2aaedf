package notice

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entnotice "github.com/berthhq/berth/ent/notice"
	"github.com/berthhq/berth/ent/noticesetting"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// Unread returns the number of unread notices of the viewer, at most 1000.
func (s *Service) Unread(ctx context.Context) (int, error) {
	ids, err := s.Client.Notice.Query().Where(entnotice.ReadAtIsNil()).Limit(maxUnread).IDs(ctx)
	return len(ids), err
}

// MarkNoticesRead marks notices of the viewer as read.
func (s *Service) MarkNoticesRead(ctx context.Context, in MarkNoticesReadInput) (*MarkNoticesReadPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	if len(in.Ids) > maxMarked {
		return nil, problem.Invalid("ids", "has %d ids, at most %d are allowed", len(in.Ids), maxMarked).WithLimit(fmt.Sprint(maxMarked))
	}
	up := s.Client.Notice.Update().Where(entnotice.UserID(v.User), entnotice.ReadAtIsNil()).SetReadAt(s.Now())
	if in.Ids != nil {
		up.Where(entnotice.IDIn(in.Ids...))
	}
	n, err := up.Save(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("mark notices: %w", err)
	}
	if n > 0 {
		s.Bus.Publish(ctx, event.Event{Topic: event.Notice, ID: v.User})
	}
	return &MarkNoticesReadPayload{n}, nil
}

// Settings returns what the viewer chose.
func (s *Service) Settings(ctx context.Context) (*Settings, error) {
	v := viewer.From(ctx)
	row, err := s.Client.NoticeSetting.Query().Where(noticesetting.UserID(v.User)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("read settings of notices: %w", err)
	}
	out := &Settings{Language: noticesetting.DefaultLanguage, Mail: s.Mail != nil}
	var choice noticekind.Choice
	if row != nil {
		out.Language, choice = row.Language, row.Routes
	}
	for _, k := range noticekind.Kinds() {
		if k == noticekind.Test || k.ForAdmins() && !v.Superadmin() {
			continue
		}
		out.Kinds = append(out.Kinds, &KindRoutes{k, k.Severity(), k.ForAdmins(), choice.Of(k)})
	}
	return out, nil
}

// SetNoticeSettings changes what the viewer chose, for events from now on.
func (s *Service) SetNoticeSettings(ctx context.Context, in SetNoticeSettingsInput) (*SettingsPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	for i, k := range in.Kinds {
		if k.Kind == noticekind.Test || slices.ContainsFunc(in.Kinds[:i], func(o RoutesInput) bool { return o.Kind == k.Kind }) {
			return nil, problem.Invalid("kinds", "%s is there twice, or has no settings", k.Kind)
		}
	}
	err = store.InTx(viewer.SystemContext(ctx), s.Client, func(tx *ent.Tx) error { return set(viewer.SystemContext(ctx), tx, v.User, in) })
	if err != nil {
		return nil, err
	}
	out, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return &SettingsPayload{out}, nil
}

func set(ctx context.Context, tx *ent.Tx, person uuid.UUID, in SetNoticeSettingsInput) error {
	if err := store.Lock(ctx, tx, "notice settings "+person.String()); err != nil {
		return err
	}
	row, err := tx.NoticeSetting.Query().Where(noticesetting.UserID(person)).Only(ctx)
	if ent.IsNotFound(err) {
		row, err = tx.NoticeSetting.Create().SetUserID(person).Save(ctx)
	}
	if err != nil {
		return fmt.Errorf("read settings of notices: %w", err)
	}
	routes := row.Routes
	if routes == nil {
		routes = noticekind.Choice{}
	}
	for _, k := range in.Kinds {
		if k.Routes == nil {
			delete(routes, k.Kind)
			continue
		}
		list := slices.Clone(k.Routes)
		slices.Sort(list)
		routes[k.Kind] = slices.Compact(list)
	}
	up := row.Update().SetRoutes(routes)
	if in.Language != nil {
		up.SetLanguage(*in.Language)
	}
	if err := up.Exec(ctx); err != nil {
		return fmt.Errorf("store settings of notices: %w", err)
	}
	return nil
}
