package client

import (
	"context"
	"errors"
	"time"
)

// Viewer is the user that asks.
type Viewer struct {
	User            User  `json:"user"`
	InitialPassword bool  `json:"initialPassword"`
	Projects        []Ref `json:"projects"`
	ResourceGroups  []Ref `json:"resourceGroups"`
	// Due is what comes before anything else: password or totp.
	Due           *string    `json:"due"`
	TOTPEnabledAt *time.Time `json:"totpEnabledAt"`
}

var whoAmI = define[struct {
	Viewer Viewer `json:"viewer"`
}](`query Viewer {
  viewer { user { ...userFields } initialPassword projects { id name } resourceGroups { id name } due totpEnabledAt }
}`, userFields, attachmentFields)

// Viewer says as whom the client asks.
func (c *Client) Viewer(ctx context.Context) (*Viewer, error) {
	out, err := whoAmI.run(ctx, c, nil)
	return &out.Viewer, err
}

var serverVersion = define[struct {
	Server struct {
		Version string `json:"version"`
	} `json:"server"`
}](`query Server { server { version } }`)

// ServerVersion asks for the server's version; it needs no login.
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	out, err := serverVersion.run(ctx, c, nil)
	return out.Server.Version, err
}

var changePassword = define[struct {
	ChangePassword struct {
		Viewer struct {
			InitialPassword bool `json:"initialPassword"`
		} `json:"viewer"`
	} `json:"changePassword"`
}](`mutation ChangePassword($input: ChangePasswordInput!) {
  changePassword(input: $input) { viewer { initialPassword } }
}`)

// ChangePassword sets one's own password and, with endAll, ends all one's access
// tokens, keypairs and SSH keys.
func (c *Client) ChangePassword(ctx context.Context, current, next string, endAll bool) error {
	in := vars{"current": current, "new": next}
	if endAll {
		in["endCredentials"] = true
	}
	_, err := changePassword.run(ctx, c, vars{"input": in})
	var refused *Error
	if errors.As(err, &refused) && (refused.Field == "current" || refused.Field == "new") {
		refused.Field = "the " + refused.Field + " password"
	}
	return err
}
