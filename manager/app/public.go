package app

import (
	"context"
	"net/netip"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/appshare"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
)

// AdmitPublic returns the place of an app that everybody at an address can open without a login: it
// is shared with the audience PUBLIC, and the policies of its session still allow that. Otherwise
// it returns the error for missing logins, which is the same for apps that do not exist.
func (s *Service) AdmitPublic(ctx context.Context, from netip.Addr, t Target) (*Place, error) {
	closed := problem.Unauthenticated("log in first")
	if _, err := appstate.CheckTarget(t.App); err != nil {
		return nil, closed
	}
	sys := viewer.SystemContext(ctx)
	sh, err := s.Client.AppShare.Query().Where(
		appshare.SessionID(t.Session), appshare.App(t.App), appshare.Kernel(t.Kernel), appshare.AudienceEQ(access.AppPublic),
	).Only(sys)
	if ent.IsNotFound(err) {
		return nil, closed
	}
	if err != nil {
		return nil, err
	}
	if sh.ExpiresAt == nil || expired(sh) || !inside(sh.Networks, from) {
		return nil, closed
	}
	row, err := s.Client.Session.Query().Where(session.ID(t.Session)).WithImage().Only(sys)
	if err != nil {
		return nil, err
	}
	most, _, err := s.publicTime(ctx, row)
	if err != nil {
		return nil, err
	}
	if row.TerminatedAt != nil || sh.CreatedAt.Add(most).Before(clock.Now()) {
		return nil, closed
	}
	return &Place{Target: t, Session: row, Guest: true}, nil
}

// publicTime returns how long an app of a session can be public, and the policy that decides: the
// lowest limit of the policies of its domain, project, owner and resource group; 0 if no policy
// allows it or one forbids it.
func (s *Service) publicTime(ctx context.Context, sess *ent.Session) (most time.Duration, by string, err error) {
	limits, err := s.policies.Limits(ctx, sess.DomainID, sess.ProjectID, sess.OwnerID, sess.ResourceGroupID)
	if err != nil {
		return 0, "", err
	}
	least := (*policy.Limit)(nil)
	for i := range limits {
		if l := &limits[i]; l.MaxPublicAppTime != nil && (least == nil || *l.MaxPublicAppTime < *least.MaxPublicAppTime) {
			least = l
		}
	}
	if least == nil {
		return 0, "", nil
	}
	return time.Duration(*least.MaxPublicAppTime) * time.Second, least.Policy, nil
}

// publicEnd returns the end of a new public share: the given time or, without one, the latest
// allowed time.
func (s *Service) publicEnd(ctx context.Context, sess *ent.Session, at *time.Time) (*time.Time, error) {
	most, by, err := s.publicTime(ctx, sess)
	switch {
	case err != nil:
		return nil, err
	case most == 0 && by == "":
		return nil, problem.Forbidden("no resource policy of this session allows public apps (maxPublicAppTime)").WithField("audience")
	case most == 0:
		return nil, problem.Forbidden("the resource policy %s does not allow public apps (maxPublicAppTime is 0)", by).WithField("audience")
	}
	latest := clock.Now().Add(most)
	switch {
	case at == nil:
		return &latest, nil
	case at.After(latest):
		return nil, problem.Invalid("expiresAt", "the resource policy %s allows public apps for %s, until %s", by, most, latest.UTC().Format(time.RFC3339)).
			WithLimit(latest.UTC().Format(time.RFC3339))
	}
	return at, nil
}
