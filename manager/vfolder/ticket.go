package vfolder

import (
	"context"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/vfolderticket"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// longest is how long after the expiry of its ticket a transfer can still run. Until then, the
// transfer is ended if the permission is lost.
const longest = 24 * time.Hour

// recordTicket records that the viewer gets tickets for a folder's files, before the viewer
// receives them.
func (s *Service) recordTicket(ctx context.Context, f *ent.Vfolder, write bool, expires time.Time) error {
	t := clock.Now()
	err := s.Client.VfolderTicket.Create().SetID(id.New(id.VfolderTicket)).
		SetUserID(viewer.From(ctx).User).SetVfolderID(f.ID).SetWrite(write).SetIssuedAt(t).SetExpiresAt(expires.Add(longest)).
		OnConflictColumns(vfolderticket.FieldUserID, vfolderticket.FieldVfolderID, vfolderticket.FieldWrite).
		Update(func(u *ent.VfolderTicketUpsert) { u.UpdateIssuedAt().UpdateExpiresAt() }).
		Exec(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("note tickets: %w", err)
	}
	return nil
}

// revoke marks the tickets of users who can no longer use the folders, and deletes expired
// tickets. Tickets of users who are not active are refused while that lasts, and are valid
// again afterwards.
func (s *Service) revoke(ctx context.Context) error {
	t := clock.Now()
	if _, err := s.Client.VfolderTicket.Delete().Where(vfolderticket.ExpiresAtLT(t)).Exec(ctx); err != nil {
		return fmt.Errorf("forget tickets: %w", err)
	}
	open, err := s.Client.VfolderTicket.Query().Where(counting).All(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	uses := make([]Use, len(open))
	for i, o := range open {
		uses[i] = Use{User: o.UserID, Folder: o.VfolderID, Write: o.Write}
	}
	who, err := s.users(ctx, uses)
	if err != nil {
		return err
	}
	lost, err := s.lost(ctx, uses, who)
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	for i, o := range open {
		if lost[i] != "" && who[o.UserID] != nil {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return s.Client.VfolderTicket.Update().Where(vfolderticket.IDIn(ids...), counting).SetRevokedAt(clock.Now()).Exec(ctx)
}

// counting matches tickets that were not revoked since the last one was issued.
var counting = predicate.VfolderTicket(func(s *sql.Selector) {
	s.Where(sql.Or(sql.IsNull(s.C(vfolderticket.FieldRevokedAt)),
		sql.ColumnsLTE(s.C(vfolderticket.FieldRevokedAt), s.C(vfolderticket.FieldIssuedAt))))
})

// revokedFolders lists the revoked tickets, in the form that proxies expect.
func (s *Service) revokedFolders(ctx context.Context) ([]*storagepb.RevokedFolder, error) {
	rows, err := s.Client.VfolderTicket.Query().
		Where(vfolderticket.RevokedAtNotNil(), vfolderticket.ExpiresAtGT(clock.Now())).Order(vfolderticket.ByID()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list revoked tickets: %w", err)
	}
	var list []*storagepb.RevokedFolder
	for _, r := range rows {
		list = append(list, &storagepb.RevokedFolder{User: r.UserID[:], Folder: r.VfolderID[:], SinceUnixMs: r.RevokedAt.UnixMilli() + 1})
	}
	return list, nil
}
