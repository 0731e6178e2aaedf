package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/viewer"
)

// Narrowed reports whether the limit applies only to sessions of one group or project. Such a
// limit does not apply to objects outside of sessions.
func (l *Limit) Narrowed() bool { return l.Group != uuid.Nil || l.Within != uuid.Nil }

// Folders returns the number of folders that count towards a limit.
func Folders(ctx context.Context, client *ent.Client, l *Limit) (int, error) {
	of := map[Scope]predicate.Vfolder{
		ScopeDomain: vfolder.DomainID(l.ScopeID), ScopeProject: vfolder.ProjectID(l.ScopeID),
		ScopeUser: vfolder.OwnerID(l.Person), ScopeKeypair: vfolder.OwnerID(l.Person),
	}
	n, err := client.Vfolder.Query().Where(of[l.Scope], vfolder.DeletedAtIsNil()).Count(viewer.SystemContext(ctx))
	if err != nil {
		return 0, fmt.Errorf("count folders of %s %s: %w", l.Scope, l.Holder, err)
	}
	return n, nil
}

// Deployments returns the number of deployments that count towards a limit: those that have not ended.
func Deployments(ctx context.Context, client *ent.Client, l *Limit) (int, error) {
	of := map[Scope]predicate.Deployment{
		ScopeDomain: deployment.DomainID(l.ScopeID), ScopeProject: deployment.ProjectID(l.ScopeID),
		ScopeUser: deployment.OwnerID(l.Person), ScopeKeypair: deployment.OwnerID(l.Person),
	}
	n, err := client.Deployment.Query().Where(of[l.Scope], deployment.EndedAtIsNil()).Count(viewer.SystemContext(ctx))
	if err != nil {
		return 0, fmt.Errorf("count deployments of %s %s: %w", l.Scope, l.Holder, err)
	}
	return n, nil
}

// fullest returns the bytes of the largest quota scope that a limit applies to.
func fullest(ctx context.Context, client *ent.Client, l *Limit) (most int64, err error) {
	of := map[Scope]predicate.QuotaScope{
		ScopeDomain: quotascope.DomainID(l.ScopeID), ScopeProject: quotascope.HolderID(l.ScopeID),
		ScopeUser: quotascope.HolderID(l.Person), ScopeKeypair: quotascope.HolderID(l.Person),
	}
	list, err := client.QuotaScope.Query().Where(of[l.Scope], quotascope.UsedBytesNotNil()).
		Order(quotascope.ByUsedBytes()).All(viewer.SystemContext(ctx))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return *list[len(list)-1].UsedBytes, nil
}

// logins returns the number of valid logins of a user.
func logins(ctx context.Context, client *ent.Client, l *Limit) (int, error) {
	if l.Person == uuid.Nil {
		return 0, nil
	}
	return client.LoginSession.Query().Where(
		loginsession.UserID(l.Person), loginsession.RevokedAtIsNil(), loginsession.ExpiresAtGT(time.Now()),
	).Count(viewer.SystemContext(ctx))
}
