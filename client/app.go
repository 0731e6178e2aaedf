package client

import "context"

// Apps lists the apps of a container, with their current status; without a kernel ID, those of the
// main container.
func (c *Client) Apps(ctx context.Context, session, kernel string) ([]App, error) {
	out, err := queryApps(ctx, c, session, kernel)
	if err != nil {
		return nil, err
	}
	if out.Node == nil {
		return nil, notFound("session", session)
	}
	return out.Node.Apps, nil
}

// AppLog returns the last output of an app that was started on demand: at most that many bytes.
func (c *Client) AppLog(ctx context.Context, app AppActionInput, bytes int) (string, error) {
	out, err := queryAppLog(ctx, c, app.Session, app.App, app.Kernel, &bytes)
	if err != nil {
		return "", err
	}
	if out.Node == nil {
		return "", notFound("session", app.Session)
	}
	return out.Node.AppLog, nil
}

// OpenApp returns an address that opens an app once. The app starts when the address is opened.
func (c *Client) OpenApp(ctx context.Context, in OpenAppInput) (*OpenedApp, error) {
	out, err := openApp(ctx, c, in)
	return &out.Payload, err
}

// RestartApp starts an app, after ending it if it runs.
func (c *Client) RestartApp(ctx context.Context, app AppActionInput) (*App, error) {
	out, err := restartApp(ctx, c, app)
	return &out.Payload.App, err
}

// StopApp ends an app.
func (c *Client) StopApp(ctx context.Context, app AppActionInput) (*App, error) {
	out, err := stopApp(ctx, c, app)
	return &out.Payload.App, err
}

// ShareApp lets other users open an app, or changes which ones.
func (c *Client) ShareApp(ctx context.Context, in ShareAppInput) (*App, error) {
	if in.ExpiresAt != nil {
		utc := in.ExpiresAt.UTC()
		in.ExpiresAt = &utc
	}
	out, err := shareApp(ctx, c, in)
	return &out.Payload.App, err
}

// UnshareApp ends the sharing of an app.
func (c *Client) UnshareApp(ctx context.Context, app AppActionInput) (*App, error) {
	out, err := unshareApp(ctx, c, app)
	return &out.Payload.App, err
}

// SSHEndpoint returns how to reach sessions over SSH, or nil if the cluster has no SSH gateway.
func (c *Client) SSHEndpoint(ctx context.Context) (*SSHEndpoint, error) {
	out, err := querySSHEndpoint(ctx, c)
	return out.Server.SSH, err
}
