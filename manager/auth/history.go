package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	maxTyped     = 254 // bytes of an e-mail address
	mostRefusals = 200 // entries per address and window for throttled attempts
)

// typed returns the form in which the text of an e-mail field is stored.
func typed(email string) string {
	email = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(email, ""))
	if len(email) > maxTyped {
		email = strings.ToValidUTF8(email[:maxTyped], "")
	}
	return email
}

// note writes a failed attempt to the login history. For an unknown e-mail address, the user
// is empty and the text is stored as typed.
func (s *Service) note(r *http.Request, u *ent.User, email string, result loginattempt.Result) {
	if result == loginattempt.ResultThrottled {
		// a throttled client must not fill the database with rows
		if _, wait := s.Throttle(r.Context(), "noted", s.ClientAddress(r), mostRefusals); wait > 0 {
			return
		}
	}
	address, agent := s.origin(r)
	row := s.client.LoginAttempt.Create().
		SetEmail(typed(email)).SetResult(result).SetClientAddress(address).SetUserAgent(agent)
	if u != nil {
		row.SetUserID(u.ID).SetDomainID(u.DomainID).SetEmail(u.Email)
	}
	// written even if the client has disconnected
	if err := row.Exec(viewer.SystemContext(context.WithoutCancel(r.Context()))); err != nil {
		s.log.WarnContext(r.Context(), "keep login history", "error", err)
	}
}

// finish ends the matching live logins, in tx, and writes an entry for each with the address
// and the browser of the login.
func finish(ctx context.Context, tx *ent.Tx, result loginattempt.Result, which ...predicate.LoginSession) ([]*ent.LoginSession, error) {
	list, err := tx.LoginSession.Query().
		Where(loginsession.RevokedAtIsNil()).Where(which...).
		Order(loginsession.ByID()).ForUpdate().WithUser().All(ctx)
	if err != nil {
		return nil, err
	}
	return list, revoke(ctx, tx, result, list)
}

func revoke(ctx context.Context, tx *ent.Tx, result loginattempt.Result, list []*ent.LoginSession) error {
	if len(list) == 0 {
		return nil
	}
	rows := make([]*ent.LoginAttemptCreate, len(list))
	for i, l := range list {
		if err := tx.LoginSession.UpdateOneID(l.ID).SetRevokedAt(clock.Now()).Exec(ctx); err != nil {
			return err
		}
		rows[i] = tx.LoginAttempt.Create().
			SetUserID(l.UserID).SetDomainID(l.Edges.User.DomainID).SetEmail(l.Edges.User.Email).SetLoginID(l.ID).
			SetMethod(loginattempt.Method(l.Method)).SetResult(result).
			SetClientAddress(l.ClientAddress).SetUserAgent(l.UserAgent)
	}
	return tx.LoginAttempt.CreateBulk(rows...).Exec(ctx)
}

// end ends the matching live logins and closes their connections.
func (s *Service) end(ctx context.Context, result loginattempt.Result, which ...predicate.LoginSession) error {
	ctx = viewer.SystemContext(ctx)
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after a commit
	list, err := finish(ctx, tx, result, which...)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.cut(ctx, list)
	return nil
}

// EndLogins ends all logins of a user in a transaction. Disconnect, after the commit, closes
// their connections.
func (s *Service) EndLogins(ctx context.Context, tx *ent.Tx, user uuid.UUID) error {
	_, err := finish(viewer.SystemContext(ctx), tx, loginattempt.ResultRevoked, loginsession.UserID(user))
	return err
}

// EndLoginsOutside ends the logins of a user from addresses that are not allowed, in a
// transaction. Recheck, after the commit, closes their connections.
func (s *Service) EndLoginsOutside(ctx context.Context, tx *ent.Tx, user uuid.UUID, allowed []string) error {
	ctx = viewer.SystemContext(ctx)
	open, err := tx.LoginSession.Query().Where(loginsession.UserID(user), living()).All(ctx)
	if err != nil {
		return fmt.Errorf("read logins: %w", err)
	}
	var outside []uuid.UUID
	for _, l := range open {
		if !fromAllowed(allowed, parseAddress(l.ClientAddress)) {
			outside = append(outside, l.ID)
		}
	}
	_, err = finish(ctx, tx, loginattempt.ResultRevoked, loginsession.IDIn(outside...))
	return err
}

// cut closes the connections of ended logins.
func (s *Service) cut(ctx context.Context, list []*ent.LoginSession) {
	for _, l := range list {
		s.Disconnect(ctx, l.ID)
	}
}

// living matches logins that can still be used.
func living() predicate.LoginSession {
	t := clock.Now()
	return loginsession.And(loginsession.RevokedAtIsNil(), loginsession.ExpiresAtGT(t), loginsession.LastSeenAtGT(t.Add(-loginIdle)))
}

// expire writes the expired logins to the login history.
func (s *Service) expire(ctx context.Context) error {
	ctx = viewer.SystemContext(ctx)
	t := clock.Now()
	for {
		tx, err := s.client.Tx(ctx)
		if err != nil {
			return err
		}
		list, err := tx.LoginSession.Query().
			Where(loginsession.RevokedAtIsNil(),
				loginsession.Or(loginsession.ExpiresAtLTE(t), loginsession.LastSeenAtLTE(t.Add(-loginIdle)))).
			Order(loginsession.ByID()).Limit(expireAtOnce).
			ForUpdate(sql.WithLockAction(sql.SkipLocked)).WithUser().All(ctx)
		if err == nil {
			err = revoke(ctx, tx, loginattempt.ResultExpired, list)
		}
		if err != nil {
			_ = tx.Rollback() // the first error is more useful
			return err
		}
		if err := tx.Commit(); err != nil || len(list) < expireAtOnce {
			return err
		}
	}
}

const expireAtOnce = 200
