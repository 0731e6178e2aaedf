package client

import "context"

// SessionTemplates lists the templates that the viewer can see, by name; name "" means all.
func (c *Client) SessionTemplates(ctx context.Context, name string) ([]SessionTemplate, error) {
	return collect(0, func(first *int, after string) (*querySessionTemplatesSessionTemplatesSessionTemplateConnection, error) {
		out, err := querySessionTemplates(ctx, c, first, after, nameIs(name))
		return &out.SessionTemplates, err
	})
}

// SessionRequest returns a session with its request.
func (c *Client) SessionRequest(ctx context.Context, id string) (*RequestedSession, error) {
	out, err := querySessionRequest(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("session", id)
	}
	return out.Node, nil
}

// CreateSessionTemplate saves a request.
func (c *Client) CreateSessionTemplate(ctx context.Context, in CreateSessionTemplateInput) (*SessionTemplate, error) {
	out, err := createSessionTemplate(ctx, c, in)
	return &out.Payload.Template, err
}

// UpdateSessionTemplate changes a template.
func (c *Client) UpdateSessionTemplate(ctx context.Context, in UpdateSessionTemplateInput) (*SessionTemplate, error) {
	out, err := updateSessionTemplate(ctx, c, in)
	return &out.Payload.Template, err
}

// DeleteSessionTemplate removes a template.
func (c *Client) DeleteSessionTemplate(ctx context.Context, id string) error {
	_, err := deleteSessionTemplate(ctx, c, DeleteSessionTemplateInput{ID: id})
	return err
}
