package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/containerd/errdefs"
)

// DeviceLogin is a login that a person confirms on the page.
type DeviceLogin struct {
	// URL is the page, on which the person enters Code, and CompleteURL contains the code.
	URL         string `json:"verification_uri"`
	CompleteURL string `json:"verification_uri_complete"`
	Code        string `json:"user_code"`
	// ExpiresIn and Interval are seconds: until the code ends, and between two calls of DeviceToken.
	ExpiresIn int `json:"expires_in"`
	Interval  int `json:"interval"`

	secret string
}

// BeginDeviceLogin begins a login for a machine. The token expires after a number of days; 0: never.
func (c *Client) BeginDeviceLogin(ctx context.Context, host string, days int) (*DeviceLogin, error) {
	var out struct {
		DeviceLogin
		Secret string `json:"device_code"`
	}
	if err := c.postJSON(ctx, "/auth/device-login", map[string]any{"host": host, "expiresDays": days}, &out); err != nil {
		return nil, err
	}
	out.DeviceLogin.secret = out.Secret
	return &out.DeviceLogin, nil
}

// DeviceToken waits until the person has confirmed, and returns a token with its ID. The error is of the class permission denied
// after a refusal, and not found after the end of the code.
func (c *Client) DeviceToken(ctx context.Context, l *DeviceLogin) (token, id string, err error) {
	pause := max(time.Second, time.Duration(l.Interval)*time.Second)
	for {
		select {
		case <-ctx.Done():
			return "", "", context.Cause(ctx)
		case <-time.After(pause):
		}
		var got struct {
			Status  string `json:"status"`
			Token   string `json:"token"`
			TokenID string `json:"token_id"`
		}
		err := c.postJSON(ctx, "/auth/device-token", map[string]string{"device_code": l.secret}, &got)
		switch {
		case errdefs.IsResourceExhausted(err), errdefs.IsUnavailable(err):
			pause = min(2*pause, 15*time.Second) // the server asks for longer pauses, or is away for a moment
		case err != nil:
			return "", "", err
		case got.Status == "denied":
			return "", "", fmt.Errorf("the login was refused on the page: %w", errdefs.ErrPermissionDenied)
		case got.Token != "":
			return got.Token, got.TokenID, nil
		}
	}
}

// postJSON sends JSON and decodes the answer.
func (c *Client) postJSON(ctx context.Context, path string, in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := c.request(ctx, http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return nil
}
