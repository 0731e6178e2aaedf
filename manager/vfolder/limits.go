package vfolder

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/store"
)

// checkQuota returns an error that lists every policy limit that a new folder would exceed: of
// folders, or of bytes. brings is the number of bytes that come with the folder, or nil if
// they are on the volume already. A lock makes requests of one holder sequential.
func (s *Service) checkQuota(ctx context.Context, tx *ent.Tx, v *viewer.Viewer, domain uuid.UUID, scope *ent.QuotaScope, brings *int64) error {
	keypair := uuid.Nil
	if id.KindOf(v.Credential) == id.Keypair {
		keypair = v.Credential
	}
	limits, err := s.Policies.Binding(ctx, place(scope, domain, keypair))
	if err != nil {
		return err
	}
	var locks []string
	for _, l := range limits {
		if l.MaxVfolders == nil {
			continue
		}
		holder := l.ScopeID
		if l.Scope == policy.ScopeKeypair {
			holder = l.Person
		}
		locks = append(locks, "folders "+holder.String())
	}
	if err := store.Lock(ctx, tx, locks...); err != nil {
		return err
	}
	var reached []string
	most := ""
	for i := range limits {
		l := &limits[i]
		if l.MaxVfolders != nil {
			n, err := policy.Folders(ctx, tx.Client(), l)
			if err != nil {
				return err
			}
			if n >= *l.MaxVfolders {
				most = fmt.Sprint(*l.MaxVfolders)
				reached = append(reached, l.Reached("folders", fmt.Sprint(n), "1", most).String())
			}
		}
		if b := l.MaxScopeBytes; b != nil && bounds(l, scope) && brings != nil && scope.UsedBytes != nil && *scope.UsedBytes+max(*brings, 1) > *b {
			most = strconv.FormatInt(*b, 10)
			asked := "more"
			if *brings > 0 {
				asked = strconv.FormatInt(*brings, 10)
			}
			reached = append(reached, l.Reached("scope bytes", strconv.FormatInt(*scope.UsedBytes, 10), asked, most).String())
		}
	}
	if brings != nil {
		for _, own := range ownReached(scope, *brings) {
			reached, most = append(reached, own.said), own.most
		}
	}
	if len(reached) > 0 {
		return problem.Exhausted("%s", strings.Join(reached, "; ")).WithField("folders").WithLimit(most)
	}
	return nil
}

// bytesLimit returns the current limit of a scope in bytes; nil for no limit.
func (s *Service) bytesLimit(ctx context.Context, scope *ent.QuotaScope) (*int64, error) {
	limits, err := s.Policies.Binding(ctx, place(scope, scope.DomainID, uuid.Nil))
	if err != nil {
		return nil, err
	}
	return leastBytes(scope, limits), nil
}
