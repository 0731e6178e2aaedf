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

// Login is what the server says about a fresh login.
type Login struct {
	User struct {
		ID    string `json:"id"`
		Email string `json:"email"`
		Role  Enum   `json:"role"`
	} `json:"user"`
	// InitialPassword is true while the generated first password is in use.
	InitialPassword bool      `json:"initialPassword"`
	ExpiresAt       time.Time `json:"expiresAt"`
	// Due is what comes before anything else: password, totp or nothing.
	Due string `json:"due"`
	// Device is a cookie, NAME=VALUE, by which the server knows this device at its
	// next login; empty from a server without such cookies.
	Device string `json:"-"`
}

// Credentials are what one logs in with.
type Credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	// Code is one of the second factor, or a recovery code.
	Code string `json:"code,omitempty"`
	// Force ends the oldest login when there are as many as are allowed.
	Force bool `json:"force,omitempty"`
	// Device is that of an earlier Login to the same server: wrong guesses of
	// strangers do not lock it out.
	Device string `json:"-"`
}

// Login asks as the user from now on, by a cookie that the client keeps in
// memory. Use it before the client is shared.
func (c *Client) Login(ctx context.Context, email, password string) (*Login, error) {
	return c.LoginWith(ctx, Credentials{Email: email, Password: password})
}

// LoginWith is Login with a second factor, or in place of another login. A
// refusal with the field "code" asks for the one, with "force" for the other.
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

// Logout ends the cookie's login.
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
