package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
)

// credential is a valid login or token with its user.
type credential struct {
	viewer          *viewer.Viewer
	sealed          []byte // encrypted secret of a keypair
	rate            *int   // requests per window, of a keypair
	expires         *time.Time
	seen            *time.Time
	initialPassword bool
	addresses       []string // prefixes of allowed client addresses; empty: all
}

// holdings selects a user's memberships, custom roles and shared folders. Rows of a project count
// only while the user is a member of the project.
const holdings = `
  (SELECT json_agg(json_build_object('id', m.project_id, 'admin', m.admin) ORDER BY m.project_id)
   FROM memberships m WHERE m.user_id = u.id),
  (SELECT json_agg(json_build_object('scope', g.scope, 'id', g.scope_id, 'permissions', r.permissions) ORDER BY g.id)
   FROM role_grants g JOIN roles r ON r.id = g.role_id WHERE g.user_id = u.id),
  (SELECT json_object_agg(s.vfolder_id, s.permission)
   FROM vfolder_shares s JOIN vfolders f ON f.id = s.vfolder_id WHERE s.user_id = u.id AND s.status = 'accepted'
   AND (f.project_id IS NULL OR EXISTS (SELECT FROM memberships m WHERE m.user_id = u.id AND m.project_id = f.project_id)))`

// live selects a valid credential with its user and their permissions, in one statement
// because every request runs it. %s is the table's column of last use, its name, the
// restrictions, the token scopes, the project, the due action, the expiry, the encrypted
// secret and the rate.
const live = `
SELECT c.id, %[7]s, c.%[1]s, u.id, u.email, u.role, u.domain_id, u.initial_password, u.allowed_addresses,` + holdings + `,
  %[4]s, %[5]s, %[6]s, %[8]s, %[9]s
FROM %[2]s c JOIN users u ON u.id = c.user_id JOIN domains d ON d.id = u.domain_id
WHERE u.status = 'active' AND d.active AND %[3]s`

// dueOf is the action that a user who logged in with a password must take first.
const dueOf = `CASE WHEN c.method <> 'password' THEN ''
  WHEN u.password_change_required OR d.password_max_age_days > 0 AND
    coalesce(u.password_changed_at, u.created_at) < now() - make_interval(days => d.password_max_age_days::int) THEN 'password'
  WHEN d.totp_required AND u.totp_enabled_at IS NULL THEN 'totp' ELSE '' END`

var (
	liveLogins = fmt.Sprintf(live, "last_seen_at", "login_sessions",
		"c.revoked_at IS NULL AND c.expires_at > $1 AND c.last_seen_at > $2 AND ", "NULL", "NULL::uuid", dueOf, "c.expires_at", noSecret, noRate)
	liveTokens = fmt.Sprintf(live, "last_used_at", "access_tokens",
		"c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > $1) AND ", "c.scopes", "c.project_id", "''", "c.expires_at", noSecret, noRate)
	liveKeypairs = fmt.Sprintf(live, "last_used_at", "keypairs",
		"c.active AND (c.expires_at IS NULL OR c.expires_at > now()) AND ", "NULL", "NULL::uuid", "''", "c.expires_at", "c.secret_sealed", "c.rate_limit")
)

const (
	noSecret = "NULL::bytea"
	noRate   = "NULL::bigint"
)

const refused = "the credentials are wrong or no longer valid"

// login finds the login of a cookie's value.
func (s *Service) login(ctx context.Context, secret string) (*credential, error) {
	t := clock.Now()
	found, err := s.find(ctx, liveLogins+"c.hash = $3", t, t.Add(-loginIdle), hash(secret))
	return s.only(ctx, found, err)
}

// token finds the access token of a secret.
func (s *Service) token(ctx context.Context, secret string) (*credential, error) {
	found, err := s.find(ctx, liveTokens+"c.hash = $2", clock.Now(), hash(secret))
	return s.only(ctx, found, err)
}

func (s *Service) only(ctx context.Context, found []*credential, err error) (*credential, error) {
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || !fromAllowed(found[0].addresses, AddressFrom(ctx)) {
		return nil, problem.Unauthenticated(refused)
	}
	s.touch(ctx, found[0])
	return found[0], nil
}

func (s *Service) find(ctx context.Context, query string, args ...any) ([]*credential, error) {
	rows, err := s.client.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("look up credentials: %w", err)
	}
	defer rows.Close()
	var out []*credential
	for rows.Next() {
		c, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

func scan(rows *sql.Rows) (*credential, error) {
	c := &credential{viewer: &viewer.Viewer{}}
	v := c.viewer
	var addresses, members, grants, shares, scopes []byte
	var within *uuid.UUID
	err := rows.Scan(&v.Credential, &c.expires, &c.seen, &v.User, &v.Email, &v.Role, &v.Domain, &c.initialPassword,
		&addresses, &members, &grants, &shares, &scopes, &within, &v.Due, &c.sealed, &c.rate)
	if err != nil {
		return nil, err
	}
	if err := equip(v, members, grants, shares); err != nil {
		return nil, err
	}
	if err := errors.Join(maybe(addresses, &c.addresses), maybe(scopes, &v.Scopes)); err != nil {
		return nil, err
	}
	if within != nil {
		v.Within = *within
	}
	narrow(v)
	return c, nil
}

// equip adds holdings to a viewer.
func equip(v *viewer.Viewer, members, grants, shares []byte) error {
	var list []struct {
		ID    uuid.UUID
		Admin bool
	}
	if err := errors.Join(maybe(members, &list), maybe(grants, &v.Grants), maybe(shares, &v.Shares)); err != nil {
		return err
	}
	for _, m := range list {
		v.Projects = append(v.Projects, m.ID)
		if m.Admin {
			v.Admins = append(v.Admins, m.ID)
		}
	}
	return nil
}

// maybe parses JSON that can be NULL.
func maybe(text []byte, into any) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// narrow reduces the viewer's permissions to those of the credential. A token without the
// admin scope makes everyone a plain user, a token of one project excludes all others, and a
// user with a due action can do nothing else.
func narrow(v *viewer.Viewer) {
	if v.Due != "" || !v.Allows(access.TokenAdmin) {
		v.Role, v.Admins, v.Grants = viewer.RoleUser, nil, nil
	}
	if v.Due != "" {
		v.Projects, v.Shares = nil, nil
	}
	if v.Within != uuid.Nil {
		elsewhere := func(p uuid.UUID) bool { return p != v.Within }
		v.Projects, v.Admins = slices.DeleteFunc(v.Projects, elsewhere), slices.DeleteFunc(v.Admins, elsewhere)
	}
}

// touch records the use of a credential, about once a minute. A failure does not fail the
// request.
func (s *Service) touch(ctx context.Context, c *credential) {
	t := clock.Now()
	statement, recorded := used[id.KindOf(c.viewer.Credential)]
	if !recorded || c.seen != nil && t.Sub(*c.seen) < touchEvery {
		return
	}
	if _, err := s.client.ExecContext(ctx, statement, t, c.viewer.Credential, t.Add(-touchEvery)); err != nil {
		s.log.WarnContext(ctx, "note use of credentials", "user", c.viewer.User, "error", err)
	}
}

// used are the statements that record the use of a credential, by kind. That of SSH keys is not
// recorded.
var used = map[id.Kind]string{
	id.LoginSession: `UPDATE login_sessions SET last_seen_at = $1 WHERE id = $2 AND last_seen_at <= $3`,
	id.AccessToken:  `UPDATE access_tokens SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at <= $3)`,
	id.Keypair:      `UPDATE keypairs SET last_used_at = $1 WHERE id = $2 AND (last_used_at IS NULL OR last_used_at <= $3)`,
}

// secretBytes is the entropy of every secret. It is too large to guess, so attempts need no
// throttle.
const secretBytes = 32

// newCookie returns a new cookie value.
func newCookie() string {
	b := make([]byte, secretBytes)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// tokenMark begins every access token, so that secret scanners and users recognize one.
const tokenMark = "berth_"

// IsToken reports whether a secret has the form of an access token.
func IsToken(secret string) bool { return strings.HasPrefix(secret, tokenMark) }

// shown is the length of the prefix of a token that stays readable.
const shown = len(tokenMark) + 6

// newToken returns a new access token: the mark and base62.
func newToken() string { return tokenMark + base62() }

// hash is the stored form of a secret. Secrets are random, so a fast hash suffices.
func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
