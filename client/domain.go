package client

import (
	"context"
)

// Domains lists the domains that the viewer can see; name "" means all.
func (c *Client) Domains(ctx context.Context, name string) ([]Domain, error) {
	return collect(0, func(first *int, after string) (*queryDomainsDomainsDomainConnection, error) {
		out, err := queryDomains(ctx, c, first, after, nameIs(name))
		return &out.Domains, err
	})
}

// CreateDomain creates a domain.
func (c *Client) CreateDomain(ctx context.Context, in CreateDomainInput) (*Domain, error) {
	out, err := createDomain(ctx, c, in)
	return &out.Payload.Domain, err
}

// UpdateDomain changes a domain.
func (c *Client) UpdateDomain(ctx context.Context, in UpdateDomainInput) (*Domain, error) {
	out, err := updateDomain(ctx, c, in)
	return &out.Payload.Domain, err
}

// DeleteDomain removes a domain without users; name must be its name.
func (c *Client) DeleteDomain(ctx context.Context, id, name string) error {
	_, err := deleteDomain(ctx, c, DeleteDomainInput{ID: id, Name: name})
	return err
}

// DomainByName returns the domain with a name.
func (c *Client) DomainByName(ctx context.Context, name string) (*Domain, error) {
	out, err := queryDomainByName(ctx, c, name)
	if err == nil && out.Domain == nil {
		return nil, notFound("domain", name)
	}
	return out.Domain, err
}
