package identity

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/password"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateUserInput describes a new user.
type CreateUserInput struct {
	Email    string
	Username string
	FullName *string
	Password string
	Role     *user.Role
	Domain   uuid.UUID
	Projects []uuid.UUID
	Policy   *uuid.UUID
}

// UserPayload is a user after a change.
type UserPayload struct{ User *ent.User }

const (
	maxEmail    = 254
	maxFullName = 128 // characters
	maxProjects = 100 // of a new user
)

// CreateUser creates a user with memberships, and with a role that the viewer can grant.
func (s *Service) CreateUser(ctx context.Context, in CreateUserInput) (*UserPayload, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	if err := in.normalise(); err != nil {
		return nil, err
	}
	d, err := s.mayAdd(ctx, in.Domain)
	if err != nil {
		return nil, err
	}
	if err := mayGrant(viewer.From(ctx), d.ID, *in.Role); err != nil {
		return nil, err
	}
	if err := password.RulesOf(d).Check("password", in.Password, in.Email, in.Username); err != nil {
		return nil, err
	}
	hash, err := s.passwords.Hash(ctx, in.Password)
	if err != nil {
		return nil, err
	}
	var u *ent.User
	err = store.InTx(ctx, s.client, func(tx *ent.Tx) error {
		u, err = addUser(ctx, tx, in, hash, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	return &UserPayload{User: u.Unwrap()}, nil
}

// mayAdd returns the active domain if the viewer can add users to it.
func (s *Service) mayAdd(ctx context.Context, id uuid.UUID) (*ent.Domain, error) {
	d, err := usableDomain(ctx, s.client.Domain, id)
	if err != nil {
		return nil, err
	}
	_, err = permit.Check(ctx, access.Create, access.User, access.Object{Domain: id})
	return d, err
}

// addUser stores a new user. An initial password may have to be changed at the first login.
func addUser(ctx context.Context, tx *ent.Tx, in CreateUserInput, hash string, change bool) (*ent.User, error) {
	if err := bindable(ctx, tx, in.Policy); err != nil {
		return nil, err
	}
	found, err := tx.Project.Query().Where(project.IDIn(in.Projects...), project.DomainID(in.Domain)).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("read projects: %w", err)
	}
	if found != len(in.Projects) {
		return nil, problem.NotFound("project of this domain").WithField("projects")
	}
	u, err := tx.User.Create().
		SetEmail(in.Email).SetUsername(in.Username).SetNillableFullName(in.FullName).SetPasswordHash(hash).
		SetRole(*in.Role).SetDomainID(in.Domain).SetPasswordChangeRequired(change).
		Save(ctx)
	if err != nil {
		return nil, err
	}
	if in.Policy != nil {
		if err := tx.PolicyAttachment.Create().SetPolicyID(*in.Policy).SetUserID(u.ID).Exec(ctx); err != nil {
			return nil, fmt.Errorf("attach policy: %w", err)
		}
	}
	for _, p := range in.Projects {
		if err := tx.Membership.Create().SetUserID(u.ID).SetProjectID(p).Exec(ctx); err != nil {
			return nil, fmt.Errorf("add to project: %w", err)
		}
	}
	return u, nil
}

// HandleOf derives a username from the part of an address before the @, with a dash for every
// character that a username cannot have.
func HandleOf(email string) string {
	local, _, _ := strings.Cut(email, "@")
	local = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, local)
	return strings.Trim(local[:min(len(local), naming.MaxName)], "._-")
}

// normalise checks the input except for the password, and converts it to the stored form.
func (in *CreateUserInput) normalise() error {
	email, err := Email(in.Email)
	if err != nil {
		return err
	}
	in.Email = email
	in.Username = strings.ToLower(in.Username)
	if in.Username == "" {
		in.Username = HandleOf(email)
	}
	if err := handle(in.Username); err != nil {
		return err
	}
	if in.FullName != nil {
		if err := naming.Line("fullName", *in.FullName, maxFullName); err != nil {
			return err
		}
	}
	if in.Role == nil {
		role := user.RoleUser
		in.Role = &role
	}
	if err := user.RoleValidator(*in.Role); err != nil {
		return problem.Invalid("role", "is not a role")
	}
	slices.SortFunc(in.Projects, compareIDs)
	in.Projects = slices.Compact(in.Projects)
	if len(in.Projects) > maxProjects {
		return problem.Invalid("projects", "has too many entries").WithLimit(fmt.Sprint(maxProjects))
	}
	return nil
}

// handle checks a chosen username.
func handle(name string) error {
	if strings.HasPrefix(name, tombstonePrefix) {
		return problem.Invalid("username", "must not begin with %s, which marks purged users", tombstonePrefix)
	}
	return naming.Handle("username", name)
}

// Email returns an address in the stored form: without a name, in lower case.
func Email(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if len(s) > maxEmail {
		return "", problem.Invalid("email", "is too long").WithLimit(fmt.Sprint(maxEmail))
	}
	if err := naming.Line("email", s, maxEmail); err != nil {
		return "", err
	}
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" || strings.ContainsAny(s, " \"<>,;") {
		return "", problem.Invalid("email", "is not an e-mail address")
	}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '@' || r == '.' }) {
		if err := naming.OneAlphabet("email", part); err != nil {
			return "", err
		}
	}
	return s, nil
}

// mayGrant checks that the viewer can grant a role in a domain: everyone who can change users
// can grant the role user, domain admins the role domain admin in their domain, superadmins
// all roles.
func mayGrant(v *viewer.Viewer, domain uuid.UUID, role user.Role) error {
	if role == user.RoleUser || v.Superadmin() || role == user.RoleAdmin && v.AdminOf(domain) {
		return nil
	}
	return problem.Forbidden("you cannot assign or remove the role %s", role).WithField("role")
}

func compareIDs(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) }
