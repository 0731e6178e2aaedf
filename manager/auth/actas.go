package auth

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

// ActAsHeader names, by id or e-mail address, the user that a request acts as.
const ActAsHeader = "X-Berth-Act-As"

// rights selects the permissions of active users, in the form of the query for credentials.
const rights = `
SELECT u.id, u.email, u.role, u.domain_id,` + holdings + `
FROM users u JOIN domains d ON d.id = u.domain_id
WHERE u.status = 'active' AND d.active AND u.id = ANY($1::uuid[])`

// ActAs replaces the viewer of Authenticate by the user that the header names.
func (s *Service) ActAs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.Header.Get(ActAsHeader); who != "" {
			v, err := s.become(r.Context(), viewer.From(r.Context()), who)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			r = r.WithContext(viewer.With(r.Context(), v))
		}
		next.ServeHTTP(w, r)
	})
}

// become returns the viewer with the permissions of another user, reduced by the limits of the
// credential and without the permission to change the other user's credentials. The viewer
// keeps the real actor.
func (s *Service) become(ctx context.Context, actor *viewer.Viewer, who string) (*viewer.Viewer, error) {
	if _, err := permit.Writer(viewer.With(ctx, actor)); err != nil {
		return nil, err
	}
	u, err := s.named(viewer.With(ctx, actor), who)
	if err != nil {
		return nil, err
	}
	if u.ID == actor.User {
		return actor, nil
	}
	on := access.Object{ID: u.ID, Domain: u.DomainID, Owner: u.ID}
	if _, err := permit.Check(viewer.With(ctx, actor), access.Impersonate, access.User, on); err != nil {
		return nil, problem.Forbidden("you may not act as this user").WithField(ActAsHeader)
	}
	if rank(viewer.Role(u.Role)) > rank(actor.Role) {
		return nil, problem.Forbidden("you may not act as a user with a higher role than yours").WithField(ActAsHeader)
	}
	v, err := s.rights(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, problem.Precondition("the user is not active").WithField(ActAsHeader)
	}
	v.Actor, v.Credential, v.Within = actor.User, actor.Credential, actor.Within
	v.Scopes = slices.Clone(actor.Scopes)
	if actor.Scopes == nil {
		v.Scopes = access.TokenScopes()
	}
	v.Scopes = slices.DeleteFunc(v.Scopes, func(t access.TokenScope) bool { return t == access.TokenAccount })
	narrow(v)
	return v, nil
}

// named returns a user that the actor can see.
func (s *Service) named(ctx context.Context, who string) (*ent.User, error) {
	q := s.client.User.Query()
	if one, err := uuid.Parse(who); err == nil {
		q.Where(user.ID(one))
	} else {
		q.Where(user.Email(strings.ToLower(who)))
	}
	u, err := q.Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "user", ActAsHeader)
	}
	return u, nil
}

// rights reads the permissions of a user; nil if the user is not active.
func (s *Service) rights(ctx context.Context, id uuid.UUID) (*viewer.Viewer, error) {
	all, err := s.Rights(ctx, []uuid.UUID{id})
	return all[id], err
}

// Rights reads the permissions of active users, independent of any credential.
func (s *Service) Rights(ctx context.Context, users []uuid.UUID) (map[uuid.UUID]*viewer.Viewer, error) {
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.String()
	}
	rows, err := s.client.QueryContext(ctx, rights, ids)
	if err != nil {
		return nil, fmt.Errorf("look up rights: %w", err)
	}
	defer rows.Close()
	all := make(map[uuid.UUID]*viewer.Viewer, len(users))
	for rows.Next() {
		v := &viewer.Viewer{}
		var members, grants, shares []byte
		if err := rows.Scan(&v.User, &v.Email, &v.Role, &v.Domain, &members, &grants, &shares); err != nil {
			return nil, fmt.Errorf("read rights: %w", err)
		}
		if err := equip(v, members, grants, shares); err != nil {
			return nil, fmt.Errorf("read rights: %w", err)
		}
		all[v.User] = v
	}
	return all, rows.Err()
}

// still reports whether the actor can continue to act as w. It returns true if that cannot be
// determined.
func (s *Service) still(ctx context.Context, actor, w *viewer.Viewer) bool {
	if actor.User != w.Actor {
		return false
	}
	v, err := s.become(ctx, actor, w.User.String())
	if err == nil {
		return same(v, w)
	}
	switch p, _ := problem.From(err); p.Code {
	case problem.CodePermissionDenied, problem.CodeNotFound, problem.CodeFailedPrecondition, problem.CodeUnauthenticated:
		return false
	}
	if ctx.Err() == nil {
		s.log.WarnContext(ctx, "check whether the user can still be impersonated", "user", w.User, "actor", w.Actor, "error", err)
	}
	return true
}

// rank orders the built-in roles: no one can act as a user of a higher rank.
func rank(r viewer.Role) int {
	switch r {
	case viewer.RoleSuperadmin, viewer.RoleMonitor:
		return 2
	case viewer.RoleAdmin:
		return 1
	}
	return 0
}

// keys returns the ids by which open connections of a viewer are ended.
func keys(v *viewer.Viewer) []uuid.UUID {
	list := []uuid.UUID{v.Credential, v.User}
	if v.Actor != uuid.Nil {
		list = append(list, v.Actor)
	}
	return list
}
