package client

import (
	"context"
	"time"
)

// IdentityProvider is an OpenID Connect issuer whose users may log in.
type IdentityProvider struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	DisplayName   string    `json:"displayName"`
	Issuer        string    `json:"issuer"`
	ClientID      string    `json:"clientID"`
	Scopes        []string  `json:"scopes"`
	Active        bool      `json:"active"`
	AutoProvision bool      `json:"autoProvision"`
	EmailDomains  []string  `json:"emailDomains"`
	Domain        Ref       `json:"domain"`
	Project       *Ref      `json:"project"`
	CreatedAt     time.Time `json:"createdAt"`
}

const providerFields = `fragment providerFields on IdentityProvider {
  id name displayName issuer clientID scopes active autoProvision emailDomains
  domain { id name } project { id name } createdAt
}`

var listProviders = define[struct {
	IdentityProviders []IdentityProvider `json:"identityProviders"`
}](`query IdentityProviders { identityProviders { ...providerFields } }`, providerFields)

// IdentityProviders lists all of them.
func (c *Client) IdentityProviders(ctx context.Context) ([]IdentityProvider, error) {
	out, err := listProviders.run(ctx, c, nil)
	return out.IdentityProviders, err
}

type providerPayload struct {
	IdentityProvider IdentityProvider `json:"identityProvider"`
}

// CreateProviderInput is a new identity provider; Domain and Project are ids.
type CreateProviderInput struct {
	Name          string   `json:"name"`
	DisplayName   string   `json:"displayName,omitempty"`
	Issuer        string   `json:"issuer"`
	ClientID      string   `json:"clientID"`
	ClientSecret  string   `json:"clientSecret"`
	Scopes        []string `json:"scopes,omitempty"`
	AutoProvision bool     `json:"autoProvision,omitempty"`
	EmailDomains  []string `json:"emailDomains,omitempty"`
	Domain        string   `json:"domain"`
	Project       string   `json:"project,omitempty"`
}

var createProvider = define[payload[providerPayload]](`mutation CreateIdentityProvider($input: CreateIdentityProviderInput!) {
  payload: createIdentityProvider(input: $input) { identityProvider { ...providerFields } }
}`, providerFields)

// CreateProvider makes an identity provider.
func (c *Client) CreateProvider(ctx context.Context, in CreateProviderInput) (*IdentityProvider, error) {
	out, err := change(ctx, c, createProvider, in)
	return &out.IdentityProvider, err
}

// UpdateProviderInput changes what is set; Project is an id.
type UpdateProviderInput struct {
	ID            string    `json:"id"`
	DisplayName   *string   `json:"displayName,omitempty"`
	ClientID      *string   `json:"clientID,omitempty"`
	ClientSecret  *string   `json:"clientSecret,omitempty"`
	Scopes        *[]string `json:"scopes,omitempty"`
	Active        *bool     `json:"active,omitempty"`
	AutoProvision *bool     `json:"autoProvision,omitempty"`
	EmailDomains  *[]string `json:"emailDomains,omitempty"`
	Project       string    `json:"project,omitempty"`
	ClearProject  bool      `json:"clearProject,omitempty"`
}

var updateProvider = define[payload[providerPayload]](`mutation UpdateIdentityProvider($input: UpdateIdentityProviderInput!) {
  payload: updateIdentityProvider(input: $input) { identityProvider { ...providerFields } }
}`, providerFields)

// UpdateProvider changes an identity provider.
func (c *Client) UpdateProvider(ctx context.Context, in UpdateProviderInput) (*IdentityProvider, error) {
	out, err := change(ctx, c, updateProvider, in)
	return &out.IdentityProvider, err
}

var deleteProvider = define[payload[struct {
	IdentityProvider idOf `json:"identityProvider"`
}]](`mutation DeleteIdentityProvider($input: DeleteIdentityProviderInput!) {
  payload: deleteIdentityProvider(input: $input) { identityProvider { id } }
}`)

// DeleteProvider removes a provider; the users whom it vouched for stay.
func (c *Client) DeleteProvider(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteProvider, idOf{id})
	return err
}
