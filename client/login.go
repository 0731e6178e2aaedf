package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"
)

// Login is the server's answer to a login.
type Login struct {
	User struct {
		ID    string `json:"id"`
		Email string `json:"email"`
		Role  Enum   `json:"role"`
	} `json:"user"`
	// InitialPassword is true while the generated first password is in use.
	InitialPassword bool      `json:"initialPassword"`
	ExpiresAt       time.Time `json:"expiresAt"`
	// Due is what the user must do first: password, totp or nothing.
	Due string `json:"due"`
	// Device is a cookie, NAME=VALUE, by which the server knows this device at its
	// next login; empty from a server without such cookies.
	Device string `json:"-"`
}

// Credentials are the values for a login.
type Credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	// Code is a one-time code of the second factor, or a recovery code.
	Code string `json:"code,omitempty"`
	// Force ends the oldest login if the maximum number of logins is reached.
	Force bool `json:"force,omitempty"`
	// Device is the Device of an earlier Login to the same server. With it, wrong passwords of
	// other people do not lock this device out.
	Device string `json:"-"`
}

// Login authenticates all later requests of the client as the user, by a cookie that the client
// keeps in memory. Use it before the client is shared.
func (c *Client) Login(ctx context.Context, email, password string) (*Login, error) {
	return c.LoginWith(ctx, Credentials{Email: email, Password: password})
}

// LoginWith is Login with a second factor, or in place of another login. An error with the field
// "code" asks for Code, and one with "force" asks for Force.
func (c *Client) LoginWith(ctx context.Context, as Credentials) (*Login, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(as)
	if err != nil {
		return nil, err
	}
	c.token, c.http.Jar = "", jar
	req, err := c.request(ctx, http.MethodPost, "/auth/login", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if as.Device != "" {
		req.Header.Set("Cookie", as.Device)
	}
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	if err := refused(resp, http.StatusOK); err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out Login
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the login's answer: %w", err)
	}
	for _, k := range resp.Cookies() {
		if strings.HasSuffix(k.Name, "berth-device") {
			out.Device = k.Name + "=" + k.Value
		}
	}
	return &out, nil
}

// Logout ends the login of the cookie.
func (c *Client) Logout(ctx context.Context) error {
	req, err := c.request(ctx, http.MethodPost, "/auth/logout", nil)
	if err != nil {
		return err
	}
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	if err := refused(resp, http.StatusNoContent, http.StatusOK); err != nil {
		return err
	}
	return resp.Body.Close()
}

// Logins lists the active logins of a user, by id; "" means the logged-in user.
func (c *Client) Logins(ctx context.Context, user string) ([]LoginSession, error) {
	return collect(0, func(first *int, after string) (*queryLoginSessionsLoginSessionsLoginSessionConnection, error) {
		out, err := queryLoginSessions(ctx, c, user, first, after)
		return &out.LoginSessions, err
	})
}

// EndLogin ends a login at once, with its open connections.
func (c *Client) EndLogin(ctx context.Context, id string) error {
	_, err := revokeLoginSession(ctx, c, RevokeLoginSessionInput{ID: id})
	return err
}

// AttemptFilter selects login attempts; zero values select all.
type AttemptFilter struct {
	Email    string
	Result   Enum
	From, To time.Time
	Limit    int
}

// LoginAttempts lists the login history, newest first.
func (c *Client) LoginAttempts(ctx context.Context, f AttemptFilter) ([]LoginAttempt, error) {
	where := between(f.From, f.To)
	put(where, "email", f.Email)
	put(where, "result", f.Result)
	return collect(f.Limit, func(first *int, after string) (*queryLoginAttemptsLoginAttemptsLoginAttemptConnection, error) {
		out, err := queryLoginAttempts(ctx, c, first, after, where)
		return &out.LoginAttempts, err
	})
}

// StartTOTP creates a second factor, which is in use after ConfirmTOTP.
func (c *Client) StartTOTP(ctx context.Context) (*TOTPSecret, error) {
	out, err := startTOTP(ctx, c)
	return &out.Payload, err
}

// ConfirmTOTP turns the second factor on and returns recovery codes, which
// cannot be read again.
func (c *Client) ConfirmTOTP(ctx context.Context, code string) ([]string, error) {
	out, err := confirmTOTP(ctx, c, ConfirmTOTPInput{Code: code})
	return out.Payload.Codes, err
}

// DisableTOTP turns the second factor off.
func (c *Client) DisableTOTP(ctx context.Context, password, code string) error {
	_, err := disableTOTP(ctx, c, DisableTOTPInput{Password: password, Code: code})
	return err
}

// NewRecoveryCodes replaces the recovery codes.
func (c *Client) NewRecoveryCodes(ctx context.Context, code string) ([]string, error) {
	out, err := regenerateRecoveryCodes(ctx, c, RegenerateRecoveryCodesInput{Code: code})
	return out.Payload.Codes, err
}

// IdentityProviders lists all identity providers.
func (c *Client) IdentityProviders(ctx context.Context) ([]IdentityProvider, error) {
	return collect(0, func(first *int, after string) (*queryIdentityProvidersIdentityProvidersIdentityProviderConnection, error) {
		out, err := queryIdentityProviders(ctx, c, first, after)
		return &out.IdentityProviders, err
	})
}

// CreateProvider creates an identity provider.
func (c *Client) CreateProvider(ctx context.Context, in CreateIdentityProviderInput) (*IdentityProvider, error) {
	out, err := createIdentityProvider(ctx, c, in)
	return &out.Payload.IdentityProvider, err
}

// UpdateProvider changes an identity provider.
func (c *Client) UpdateProvider(ctx context.Context, in UpdateIdentityProviderInput) (*IdentityProvider, error) {
	out, err := updateIdentityProvider(ctx, c, in)
	return &out.Payload.IdentityProvider, err
}

// DeleteProvider removes an identity provider; its users stay.
func (c *Client) DeleteProvider(ctx context.Context, id string) error {
	_, err := deleteIdentityProvider(ctx, c, DeleteIdentityProviderInput{ID: id})
	return err
}

// IdentityProviderByName returns the identity provider with a name.
func (c *Client) IdentityProviderByName(ctx context.Context, name string) (*IdentityProvider, error) {
	out, err := queryIdentityProviderByName(ctx, c, name)
	if err == nil && out.IdentityProvider == nil {
		return nil, notFound("identity provider", name)
	}
	return out.IdentityProvider, err
}
