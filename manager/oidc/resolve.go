package oidc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/externalidentity"
	"github.com/berthhq/berth/ent/loginattempt"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/signup"
)

const maxSubject = 255 // limit of OpenID Connect

// resolve returns the user of a set of claims: the known one, else the one with the verified
// e-mail address, else a new one if the provider creates users.
func (s *Service) resolve(ctx context.Context, p *ent.IdentityProvider, c claims) (*ent.User, error) {
	if len(c.Subject) > maxSubject || naming.Line("sub", c.Subject, maxSubject) != nil {
		return nil, refuse(codeToken, "the subject is not a text of at most %d characters", maxSubject)
	}
	ctx = viewer.SystemContext(ctx)
	u, err := s.known(ctx, p, c)
	if err != nil || u != nil {
		return u, err
	}
	email, err := vouched(p, c)
	if err != nil {
		return nil, err
	}
	u, err = s.join(ctx, p, c, email)
	if ent.IsConstraintError(err) { // of two concurrent logins, one finds the user that the other created
		if u, err = s.known(ctx, p, c); err == nil && u == nil {
			err = refuse(codeUnknown, "another login has just created the user")
		}
	}
	return u, err
}

// known returns the user of a subject, or nil if it has never logged in.
func (s *Service) known(ctx context.Context, p *ent.IdentityProvider, c claims) (*ent.User, error) {
	u, err := s.client.User.Query().
		Where(user.HasExternalIdentitiesWith(externalidentity.ProviderID(p.ID), externalidentity.Subject(c.Subject))).
		WithDomain().Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up identity: %w", err)
	}
	return usable(u)
}

func usable(u *ent.User) (*ent.User, error) {
	if u.Status != user.StatusActive || !u.Edges.Domain.Active {
		return nil, &refusal{code: codeInactive, cause: fmt.Errorf("the user is %s", u.Status), person: u, result: loginattempt.ResultNotActive}
	}
	return u, nil
}

// vouched returns the e-mail address if it is verified and in a domain that the provider may
// confirm.
func vouched(p *ent.IdentityProvider, c claims) (string, error) {
	if c.EmailVerified != true { // the string "true" and 1 do not count
		return "", refuse(codeUnverified, "email_verified is %#v", c.EmailVerified)
	}
	email, err := identity.Email(c.Email)
	if err != nil {
		return "", &refusal{code: codeUnverified, cause: err}
	}
	host := email[strings.LastIndexByte(email, '@')+1:]
	if len(p.EmailDomains) > 0 && !slices.Contains(p.EmailDomains, host) {
		return "", &refusal{code: codeEmail, cause: fmt.Errorf("%s is not in a domain of the provider", host), email: email}
	}
	return email, nil
}

// join binds the subject to the user with the e-mail address, or to a new user.
func (s *Service) join(ctx context.Context, p *ent.IdentityProvider, c claims, email string) (*ent.User, error) {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // no effect after a commit
	u, err := tx.User.Query().Where(user.Email(email)).WithDomain().Only(ctx)
	switch {
	case ent.IsNotFound(err) && p.AutoProvision:
		full := strings.TrimSpace(c.Name)
		if naming.Line("name", full, naming.MaxName) != nil {
			full = ""
		}
		u, err = signup.Join(ctx, tx, signup.Person{
			Email: email, Username: signup.Handle(email), FullName: full,
			Domain: p.DomainID, Project: p.ProjectID, Status: user.StatusActive,
		})
		if err != nil {
			return nil, fmt.Errorf("make user: %w", err)
		}
	case ent.IsNotFound(err):
		return nil, &refusal{code: codeUnknown, cause: err, email: email}
	case err != nil:
		return nil, fmt.Errorf("look up user: %w", err)
	case u.DomainID != p.DomainID:
		return nil, &refusal{code: codeUnknown, cause: fmt.Errorf("the user is in another domain"), email: email}
	default:
		if u, err = usable(u); err != nil {
			return nil, err
		}
	}
	if err := tx.ExternalIdentity.Create().SetProviderID(p.ID).SetSubject(c.Subject).SetUserID(u.ID).Exec(ctx); err != nil {
		return nil, fmt.Errorf("keep identity: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return u.Unwrap(), nil
}
