package client

import (
	"context"
)

// IdleCheckers lists the idle checkers that the viewer can see; name "" means all.
func (c *Client) IdleCheckers(ctx context.Context, name string) ([]IdleChecker, error) {
	return collect(0, func(first *int, after string) (*queryIdleCheckersIdleCheckersIdleCheckerConnection, error) {
		out, err := queryIdleCheckers(ctx, c, first, after, nameIs(name))
		return &out.IdleCheckers, err
	})
}

// CreateIdleChecker creates a checker, which applies nowhere yet.
func (c *Client) CreateIdleChecker(ctx context.Context, in CreateIdleCheckerInput) (*IdleChecker, error) {
	out, err := createIdleChecker(ctx, c, in)
	return &out.Payload.Checker, err
}

// UpdateIdleChecker changes a checker.
func (c *Client) UpdateIdleChecker(ctx context.Context, in UpdateIdleCheckerInput) (*IdleChecker, error) {
	out, err := updateIdleChecker(ctx, c, in)
	return &out.Payload.Checker, err
}

// DeleteIdleChecker removes a checker from all places.
func (c *Client) DeleteIdleChecker(ctx context.Context, id string) error {
	_, err := deleteIdleChecker(ctx, c, DeleteIdleCheckerInput{ID: id})
	return err
}

// IdlePlace is a domain, a project or a resource group; the zero value is every session.
type IdlePlace struct{ Domain, Project, ResourceGroup string } // ids

// AttachIdleChecker applies a checker to a place.
func (c *Client) AttachIdleChecker(ctx context.Context, in AttachIdleCheckerInput) (*IdleChecker, error) {
	out, err := attachIdleChecker(ctx, c, in)
	return &out.Payload.Checker, err
}

// DetachIdleChecker removes a checker from a place.
func (c *Client) DetachIdleChecker(ctx context.Context, in DetachIdleCheckerInput) (*IdleChecker, error) {
	out, err := detachIdleChecker(ctx, c, in)
	return &out.Payload.Checker, err
}

// IdleDryRun tries a checker by its id, or a new one, at a place or where it applies.
func (c *Client) IdleDryRun(ctx context.Context, checker string, in *CreateIdleCheckerInput, at IdlePlace) (*IdleDryRun, error) {
	out, err := queryIdleDryRun(ctx, c, checker, in, at.Domain, at.Project, at.ResourceGroup)
	return &out.IdleDryRun, err
}

// SetSessionIdleExempt exempts a session from all idle checks, or ends the exemption.
func (c *Client) SetSessionIdleExempt(ctx context.Context, id string, exempt bool) error {
	_, err := setSessionIdleExempt(ctx, c, SetSessionIdleExemptInput{ID: id, Exempt: exempt})
	return err
}

// IdleCheckerByName returns the idle checker with a name.
func (c *Client) IdleCheckerByName(ctx context.Context, name string) (*IdleChecker, error) {
	out, err := queryIdleCheckerByName(ctx, c, name)
	if err == nil && out.IdleChecker == nil {
		return nil, notFound("idle checker", name)
	}
	return out.IdleChecker, err
}
