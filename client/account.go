package client

import (
	"context"
	"time"
)

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
