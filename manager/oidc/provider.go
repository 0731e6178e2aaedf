package oidc

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/domain"
	"github.com/berthhq/berth/ent/identityprovider"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/permit"
)

const (
	maxText = 512
	maxList = 50
)

// CreateIdentityProviderInput describes a new provider.
type CreateIdentityProviderInput struct {
	Name          string // part of the login URL
	DisplayName   *string
	Issuer        string
	ClientID      string
	ClientSecret  string
	Scopes        []string // in addition to openid; empty: email and profile
	AutoProvision *bool
	EmailDomains  []string
	Domain        uuid.UUID
	Project       *uuid.UUID
}

// UpdateIdentityProviderInput changes the fields that are not nil. The issuer and the domain
// cannot change, because existing identities belong to them.
type UpdateIdentityProviderInput struct {
	ID            uuid.UUID
	DisplayName   *string
	ClientID      *string
	ClientSecret  *string
	Scopes        []string
	Active        *bool
	AutoProvision *bool
	EmailDomains  []string
	Project       *uuid.UUID
	ClearProject  *bool
}

// DeleteIdentityProviderInput names a provider.
type DeleteIdentityProviderInput struct{ ID uuid.UUID }

// IdentityProviderPayload is a provider after a change.
type IdentityProviderPayload struct{ IdentityProvider *ent.IdentityProvider }

// LoginProvider is a button on the login page.
type LoginProvider struct{ Name, DisplayName string }

// LoginProviders returns the enabled providers.
func (s *Service) LoginProviders(ctx context.Context) ([]*LoginProvider, error) {
	list, err := s.client.IdentityProvider.Query().
		Where(identityprovider.Active(true), identityprovider.HasDomainWith(domain.Active(true))).
		Order(ent.Asc(identityprovider.FieldName)).All(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read identity providers: %w", err)
	}
	out := make([]*LoginProvider, len(list))
	for i, p := range list {
		out[i] = &LoginProvider{Name: p.Name, DisplayName: p.DisplayName}
		if p.DisplayName == "" {
			out[i].DisplayName = p.Name
		}
	}
	return out, nil
}

// CreateIdentityProvider creates a provider; only superadmins can.
func (s *Service) CreateIdentityProvider(ctx context.Context, in CreateIdentityProviderInput) (*IdentityProviderPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.Provider, access.Object{Domain: in.Domain}); err != nil {
		return nil, err
	}
	if err := naming.Handle("name", in.Name); err != nil {
		return nil, err
	}
	if err := checkIssuer(in.Issuer); err != nil {
		return nil, err
	}
	if in.ClientSecret == "" {
		return nil, problem.Invalid("clientSecret", "must not be empty")
	}
	domains, err := settings(in.DisplayName, &in.ClientID, &in.ClientSecret, in.Scopes, in.EmailDomains)
	if err != nil {
		return nil, err
	}
	auto := in.AutoProvision != nil && *in.AutoProvision
	if err := provisionable(auto, domains); err != nil {
		return nil, err
	}
	if _, err := s.client.Domain.Get(ctx, in.Domain); err != nil {
		return nil, permit.Missing(err, "domain", "domain")
	}
	if err := s.projectOf(ctx, in.Project, in.Domain); err != nil {
		return nil, err
	}
	scopes := in.Scopes
	if len(scopes) == 0 {
		scopes = []string{"email", "profile"}
	}
	p, err := s.client.IdentityProvider.Create().
		SetName(in.Name).SetNillableDisplayName(in.DisplayName).SetIssuer(in.Issuer).SetClientID(in.ClientID).
		SetClientSecretSealed(s.keys.Seal(seal.ProviderSecret, []byte(in.ClientSecret))).SetScopes(scopes).
		SetAutoProvision(auto).SetEmailDomains(domains).SetDomainID(in.Domain).SetNillableProjectID(in.Project).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create identity provider: %w", err)
	}
	return &IdentityProviderPayload{IdentityProvider: p}, nil
}

// UpdateIdentityProvider changes a provider; only superadmins can.
func (s *Service) UpdateIdentityProvider(ctx context.Context, in UpdateIdentityProviderInput) (*IdentityProviderPayload, error) {
	p, err := s.changeable(ctx, access.Update, in.ID)
	if err != nil {
		return nil, err
	}
	domains, err := settings(in.DisplayName, in.ClientID, in.ClientSecret, in.Scopes, in.EmailDomains)
	if err != nil {
		return nil, err
	}
	auto := p.AutoProvision
	if in.AutoProvision != nil {
		auto = *in.AutoProvision
	}
	if in.EmailDomains == nil {
		domains = p.EmailDomains
	}
	if err := provisionable(auto, domains); err != nil {
		return nil, err
	}
	if err := s.projectOf(ctx, in.Project, p.DomainID); err != nil {
		return nil, err
	}
	up := s.client.IdentityProvider.UpdateOne(p).
		SetNillableDisplayName(in.DisplayName).SetNillableClientID(in.ClientID).SetNillableActive(in.Active).
		SetAutoProvision(auto).SetEmailDomains(domains).SetNillableProjectID(in.Project)
	if in.ClearProject != nil && *in.ClearProject {
		up.ClearProjectID()
	}
	if in.ClientSecret != nil {
		up.SetClientSecretSealed(s.keys.Seal(seal.ProviderSecret, []byte(*in.ClientSecret)))
	}
	if in.Scopes != nil {
		up.SetScopes(in.Scopes)
	}
	if p, err = up.Save(ctx); err != nil {
		return nil, fmt.Errorf("change identity provider %s: %w", in.ID, err)
	}
	return &IdentityProviderPayload{IdentityProvider: p}, nil
}

// DeleteIdentityProvider deletes a provider with its identities, but not the users; only
// superadmins can.
func (s *Service) DeleteIdentityProvider(ctx context.Context, in DeleteIdentityProviderInput) (*IdentityProviderPayload, error) {
	p, err := s.changeable(ctx, access.Delete, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.client.IdentityProvider.DeleteOne(p).Exec(ctx); err != nil {
		return nil, fmt.Errorf("delete identity provider %s: %w", in.ID, err)
	}
	return &IdentityProviderPayload{IdentityProvider: p}, nil
}

func (s *Service) changeable(ctx context.Context, op access.Operation, id uuid.UUID) (*ent.IdentityProvider, error) {
	if _, err := permit.Writer(ctx); err != nil {
		return nil, err
	}
	p, err := s.client.IdentityProvider.Query().Where(identityprovider.ID(id)).WithDomain().Only(ctx)
	if err != nil {
		return nil, permit.Missing(err, "identity provider", "id")
	}
	_, err = permit.Check(ctx, op, access.Provider, access.Object{ID: p.ID, Domain: p.DomainID})
	return p, err
}

func (s *Service) projectOf(ctx context.Context, id *uuid.UUID, of uuid.UUID) error {
	if id == nil {
		return nil
	}
	p, err := s.client.Project.Get(ctx, *id)
	if err != nil {
		return permit.Missing(err, "project", "project")
	}
	if p.DomainID != of {
		return problem.NotFound("project of this domain").WithField("project")
	}
	return nil
}

// settings checks the common input of creation and change, and returns the e-mail domains in
// canonical form.
func settings(display, client, secret *string, scopes, domains []string) ([]string, error) {
	for _, text := range []struct {
		field string
		value *string
		least int
	}{{"displayName", display, 0}, {"clientId", client, 1}, {"clientSecret", secret, 1}} {
		if text.value == nil {
			continue
		}
		if len(*text.value) < text.least {
			return nil, problem.Invalid(text.field, "must not be empty")
		}
		if err := naming.Line(text.field, *text.value, maxText); err != nil {
			return nil, err
		}
	}
	if len(scopes) > maxList || len(domains) > maxList {
		return nil, problem.Invalid("", "the list is too long").WithLimit(fmt.Sprint(maxList))
	}
	for _, scope := range scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil, problem.Invalid("scopes", "%q is not a scope", scope)
		}
	}
	out := []string{}
	for _, d := range domains {
		d = strings.ToLower(strings.TrimSpace(d))
		if d == "" || len(d) > 253 || strings.ContainsAny(d, "@*/\\ :,") || strings.HasPrefix(d, ".") {
			return nil, problem.Invalid("emailDomains", "%q is not a domain such as corp.example", d)
		}
		out = append(out, d)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func provisionable(auto bool, domains []string) error {
	if auto && len(domains) == 0 {
		return problem.Invalid("emailDomains", "must not be empty while accounts are created on first login")
	}
	return nil
}

// checkIssuer accepts https, and http on this host.
func checkIssuer(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(text) > maxText {
		return problem.Invalid("issuer", "is not a URL such as https://login.example.org")
	}
	if !safe(u) {
		return problem.Invalid("issuer", "must be https")
	}
	return nil
}

func safe(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname())
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
