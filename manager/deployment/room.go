package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/ent"
	entdeployment "github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

// usualMost limits the deployments of a user that have not ended if no policy does.
const usualMost = 200

// room checks that a user can have one more deployment in a project. A lock makes the requests that count for the same limit
// sequential until the transaction ends.
func (s *Service) room(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, p *ent.Project) error {
	at := policy.Place{Domain: p.DomainID, Project: p.ID, User: v.User}
	if id.KindOf(v.Credential) == id.Keypair {
		at.Keypair = v.Credential
	}
	limits, err := s.Policies.Binding(ctx, at)
	if err != nil {
		return err
	}
	limits = slices.DeleteFunc(limits, func(l policy.Limit) bool { return l.MaxDeployments == nil || l.Narrowed() })
	locks := []string{"deployments of " + v.User.String()}
	for _, l := range limits {
		if l.Scope == policy.ScopeDomain || l.Scope == policy.ScopeProject {
			locks = append(locks, "deployments of "+l.ScopeID.String())
		}
	}
	if err := store.Lock(ctx, tx, locks...); err != nil {
		return err
	}
	if len(limits) == 0 {
		return usualRoom(ctx, tx, v)
	}
	var reached []string
	most := ""
	for i := range limits {
		l := &limits[i]
		n, err := policy.Deployments(ctx, tx.Client(), l)
		if err != nil {
			return err
		}
		if n >= *l.MaxDeployments {
			most = fmt.Sprint(*l.MaxDeployments)
			reached = append(reached, l.Reached("deployments", fmt.Sprint(n), "1", most).String())
		}
	}
	if len(reached) > 0 {
		return problem.Exhausted("%s", strings.Join(reached, "; ")).WithLimit(most)
	}
	return nil
}

func usualRoom(ctx context.Context, tx *ent.Tx, v *viewer.Viewer) error {
	n, err := tx.Deployment.Query().Where(entdeployment.OwnerID(v.User), entdeployment.EndedAtIsNil()).Count(ctx)
	if err != nil {
		return fmt.Errorf("count deployments: %w", err)
	}
	if n >= usualMost {
		return problem.Exhausted("you have %d deployments, delete one first", n).WithLimit(fmt.Sprint(usualMost))
	}
	return nil
}
