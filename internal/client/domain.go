package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Domain is the top of ownership and limits.
type Domain struct {
	ID                   string         `json:"id"`
	Name                 string         `json:"name"`
	Description          string         `json:"description"`
	Active               bool           `json:"active"`
	CreatedAt            time.Time      `json:"createdAt"`
	RegistriesRestricted bool           `json:"registriesRestricted"`
	Registries           []Ref          `json:"registries"`
	TOTPRequired         bool           `json:"totpRequired"`
	PasswordMinLength    int            `json:"passwordMinLength"`
	PasswordMaxAgeDays   int            `json:"passwordMaxAgeDays"`
	SignUp               string         `json:"signUp"`
	Policies             []Attachment   `json:"policies"`
	Occupied             resource.Slots `json:"occupied"`
	Projects             struct {
		TotalCount int `json:"totalCount"`
	} `json:"projects"`
	Users struct {
		TotalCount int `json:"totalCount"`
	} `json:"users"`
}

const domainFields = `fragment domainFields on Domain {
  id name description active createdAt registriesRestricted registries { id name }
  totpRequired passwordMinLength passwordMaxAgeDays signUp
  policies { ...attachmentFields } occupied projects { totalCount }
  users(where: { statusIn: [active, inactive, before_verification] }) { totalCount }
}`

var listDomains = define[struct {
	Domains connection[Domain] `json:"domains"`
}](`query Domains($first: Int, $after: Cursor, $where: DomainWhereInput) {
  domains(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...domainFields } } pageInfo { hasNextPage endCursor }
  }
}`, domainFields, attachmentFields)

// Domains lists domains in sight; name "" means all.
func (c *Client) Domains(ctx context.Context, name string) ([]Domain, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Domain], error) {
		out, err := listDomains.run(ctx, c, v)
		return out.Domains, err
	})
}

type domainPayload struct {
	Domain Domain `json:"domain"`
}

// CreateDomainInput is a new domain; Policy is an id.
type CreateDomainInput struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Policy      string `json:"policy,omitempty"`
}

var createDomain = define[payload[domainPayload]](`mutation CreateDomain($input: CreateDomainInput!) {
  payload: createDomain(input: $input) { domain { ...domainFields } }
}`, domainFields, attachmentFields)

// CreateDomain makes a domain.
func (c *Client) CreateDomain(ctx context.Context, in CreateDomainInput) (*Domain, error) {
	out, err := change(ctx, c, createDomain, in)
	return &out.Domain, err
}

// UpdateDomainInput changes what is set; Registries are ids.
type UpdateDomainInput struct {
	ID                   string    `json:"id"`
	Name                 *string   `json:"name,omitempty"`
	Description          *string   `json:"description,omitempty"`
	Active               *bool     `json:"active,omitempty"`
	RegistriesRestricted *bool     `json:"registriesRestricted,omitempty"`
	Registries           *[]string `json:"registries,omitempty"`
	TOTPRequired         *bool     `json:"totpRequired,omitempty"`
	PasswordMinLength    *int      `json:"passwordMinLength,omitempty"`
	PasswordMaxAgeDays   *int      `json:"passwordMaxAgeDays,omitempty"`
	SignUp               *string   `json:"signUp,omitempty"`
}

var updateDomain = define[payload[domainPayload]](`mutation UpdateDomain($input: UpdateDomainInput!) {
  payload: updateDomain(input: $input) { domain { ...domainFields } }
}`, domainFields, attachmentFields)

// UpdateDomain changes a domain.
func (c *Client) UpdateDomain(ctx context.Context, in UpdateDomainInput) (*Domain, error) {
	out, err := change(ctx, c, updateDomain, in)
	return &out.Domain, err
}

var purgeDomain = define[payload[idOf]](`mutation PurgeDomain($input: PurgeDomainInput!) {
  payload: purgeDomain(input: $input) { id }
}`)

// PurgeDomain removes a domain that no one lives in; name is its name again.
func (c *Client) PurgeDomain(ctx context.Context, id, name string) error {
	_, err := change(ctx, c, purgeDomain, vars{"id": id, "name": name})
	return err
}
