package client

import (
	"context"
	"time"
)

// LoginSession is one login of a browser.
type LoginSession struct {
	ID            string    `json:"id"`
	CreatedAt     time.Time `json:"createdAt"`
	ExpiresAt     time.Time `json:"expiresAt"`
	LastSeenAt    time.Time `json:"lastSeenAt"`
	ClientAddress string    `json:"clientAddress"`
	UserAgent     string    `json:"userAgent"`
	Current       bool      `json:"current"`
}

var listLogins = define[struct {
	LoginSessions []LoginSession `json:"loginSessions"`
}](`query LoginSessions($user: ID) {
  loginSessions(user: $user) { id createdAt expiresAt lastSeenAt clientAddress userAgent current }
}`)

// Logins lists those of a user by id that are not over, "" for one's own.
func (c *Client) Logins(ctx context.Context, user string) ([]LoginSession, error) {
	v := vars{}
	if user != "" {
		v["user"] = user
	}
	out, err := listLogins.run(ctx, c, v)
	return out.LoginSessions, err
}

var revokeLogin = define[payload[idOf]](`mutation RevokeLoginSession($input: RevokeLoginSessionInput!) {
  payload: revokeLoginSession(input: $input) { id }
}`)

// EndLogin ends a login at once, with its open connections.
func (c *Client) EndLogin(ctx context.Context, id string) error {
	_, err := change(ctx, c, revokeLogin, idOf{id})
	return err
}

// LoginAttempt is a line of the login history.
type LoginAttempt struct {
	ID            string    `json:"id"`
	At            time.Time `json:"at"`
	Email         string    `json:"email"`
	Method        string    `json:"method"`
	Result        string    `json:"result"`
	ClientAddress string    `json:"clientAddress"`
	UserAgent     string    `json:"userAgent"`
}

// AttemptFilter narrows the login history; zero values do not.
type AttemptFilter struct {
	Email, Result string
	From, To      time.Time
	Limit         int
}

var listAttempts = define[struct {
	LoginAttempts connection[LoginAttempt] `json:"loginAttempts"`
}](`query LoginAttempts($first: Int, $after: Cursor, $where: LoginAttemptWhereInput) {
  loginAttempts(first: $first, after: $after, where: $where, orderBy: [{ field: AT, direction: DESC }]) {
    edges { node { id at email method result clientAddress userAgent } } pageInfo { hasNextPage endCursor }
  }
}`)

// LoginAttempts reads the login history, newest first.
func (c *Client) LoginAttempts(ctx context.Context, f AttemptFilter) ([]LoginAttempt, error) {
	where := between(f.From, f.To)
	put(where, "email", f.Email)
	put(where, "result", f.Result)
	return collect(f.Limit, vars{"where": where}, func(v vars) (connection[LoginAttempt], error) {
		out, err := listAttempts.run(ctx, c, v)
		return out.LoginAttempts, err
	})
}

// put sets what is not empty.
func put(where vars, name, value string) {
	if value != "" {
		where[name] = value
	}
}

// between is a filter on the field at; zero times leave a side open.
func between(from, to time.Time) vars {
	where := vars{}
	if !from.IsZero() {
		where["atGTE"] = from.UTC()
	}
	if !to.IsZero() {
		where["atLT"] = to.UTC()
	}
	return where
}

// TOTPSecret is what an authenticator app needs.
type TOTPSecret struct {
	Secret string `json:"secret"`
	URL    string `json:"url"`
}

var startTOTP = define[payload[TOTPSecret]](`mutation StartTotp { payload: startTotp { secret url } }`)

// StartTOTP asks for a second factor, which counts once a code is confirmed.
func (c *Client) StartTOTP(ctx context.Context) (*TOTPSecret, error) {
	out, err := startTOTP.run(ctx, c, nil)
	return &out.Payload, err
}

type recoveryCodes struct {
	Codes []string `json:"codes"`
}

var confirmTOTP = define[payload[recoveryCodes]](`mutation ConfirmTotp($input: ConfirmTotpInput!) {
  payload: confirmTotp(input: $input) { codes }
}`)

// ConfirmTOTP turns the second factor on and returns recovery codes, which
// cannot be read again.
func (c *Client) ConfirmTOTP(ctx context.Context, code string) ([]string, error) {
	out, err := change(ctx, c, confirmTOTP, vars{"code": code})
	return out.Codes, err
}

var disableTOTP = define[payload[struct {
	Viewer struct {
		TOTPEnabledAt *time.Time `json:"totpEnabledAt"`
	} `json:"viewer"`
}]](`mutation DisableTotp($input: DisableTotpInput!) {
  payload: disableTotp(input: $input) { viewer { totpEnabledAt } }
}`)

// DisableTOTP turns the second factor off.
func (c *Client) DisableTOTP(ctx context.Context, password, code string) error {
	_, err := change(ctx, c, disableTOTP, vars{"password": password, "code": code})
	return err
}

var newRecoveryCodes = define[payload[recoveryCodes]](`mutation RegenerateRecoveryCodes($input: RegenerateRecoveryCodesInput!) {
  payload: regenerateRecoveryCodes(input: $input) { codes }
}`)

// NewRecoveryCodes replaces the recovery codes.
func (c *Client) NewRecoveryCodes(ctx context.Context, code string) ([]string, error) {
	out, err := change(ctx, c, newRecoveryCodes, vars{"code": code})
	return out.Codes, err
}
