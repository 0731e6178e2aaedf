package client

import (
	"context"
	"time"
)

// AccessToken is a token without its secret.
type AccessToken struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Prefix     string     `json:"prefix"`
	Scopes     []string   `json:"scopes"`
	Project    *Ref       `json:"project"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	// MakerID is the token or keypair that it was made with, and ends with.
	MakerID *string `json:"makerID"`
	Status  string  `json:"status"`
}

const tokenFields = `fragment tokenFields on AccessToken {
  id name prefix scopes project { id name } createdAt expiresAt lastUsedAt revokedAt makerID status
}`

// CreateAccessTokenInput is a new token: without scopes it may do all that its
// user may, without a project reach all projects of theirs.
type CreateAccessTokenInput struct {
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes,omitempty"`
	Project   string     `json:"project,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// NewToken is a token with the secret that cannot be read again.
type NewToken struct {
	AccessToken AccessToken `json:"accessToken"`
	Secret      *string     `json:"secret"`
}

var createToken = define[payload[NewToken]](`mutation CreateAccessToken($input: CreateAccessTokenInput!) {
  payload: createAccessToken(input: $input) { accessToken { ...tokenFields } secret }
}`, tokenFields)

// CreateAccessToken makes a token with all rights; a zero expiry means none.
func (c *Client) CreateAccessToken(ctx context.Context, name string, expires time.Time) (token AccessToken, secret string, err error) {
	in := CreateAccessTokenInput{Name: name}
	if !expires.IsZero() {
		in.ExpiresAt = &expires
	}
	made, err := c.CreateToken(ctx, in)
	if err == nil && made.Secret != nil {
		secret = *made.Secret
	}
	return made.AccessToken, secret, err
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, in CreateAccessTokenInput) (*NewToken, error) {
	if in.ExpiresAt != nil {
		utc := in.ExpiresAt.UTC()
		in.ExpiresAt = &utc
	}
	out, err := change(ctx, c, createToken, in)
	return &out, err
}

var listTokens = define[struct {
	AccessTokens connection[AccessToken] `json:"accessTokens"`
}](`query AccessTokens($first: Int, $after: Cursor, $where: AccessTokenWhereInput) {
  accessTokens(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT }]) {
    edges { node { ...tokenFields } } pageInfo { hasNextPage endCursor }
  }
}`, tokenFields)

// AccessTokens lists one's tokens that were not revoked.
func (c *Client) AccessTokens(ctx context.Context) ([]AccessToken, error) {
	return collect(0, vars{"where": vars{"revokedAtIsNil": true}}, func(v vars) (connection[AccessToken], error) {
		out, err := listTokens.run(ctx, c, v)
		return out.AccessTokens, err
	})
}

var revokeToken = define[payload[struct {
	AccessToken AccessToken `json:"accessToken"`
}]](`mutation RevokeAccessToken($input: RevokeAccessTokenInput!) {
  payload: revokeAccessToken(input: $input) { accessToken { ...tokenFields } }
}`, tokenFields)

// RevokeAccessToken ends a token at once.
func (c *Client) RevokeAccessToken(ctx context.Context, id string) error {
	_, err := change(ctx, c, revokeToken, idOf{id})
	return err
}

// SSHKey is the public half of a key that enters sessions.
type SSHKey struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	PublicKey   string     `json:"publicKey"`
	Fingerprint string     `json:"fingerprint"`
	CreatedAt   time.Time  `json:"createdAt"`
	ExpiresAt   *time.Time `json:"expiresAt"`
	// MakerID is the token or keypair that it was made with, and ends with.
	MakerID *string `json:"makerID"`
	Status  string  `json:"status"`
}

const sshKeyFields = `fragment sshKeyFields on SSHKey { id name publicKey fingerprint createdAt expiresAt makerID status }`

var listSSHKeys = define[struct {
	SSHKeys []SSHKey `json:"sshKeys"`
}](`query SSHKeys { sshKeys { ...sshKeyFields } }`, sshKeyFields)

// SSHKeys lists one's own keys.
func (c *Client) SSHKeys(ctx context.Context) ([]SSHKey, error) {
	out, err := listSSHKeys.run(ctx, c, nil)
	return out.SSHKeys, err
}

// NewSSHKey is a key; PrivateKey, which cannot be read again, is there when
// the server made it.
type NewSSHKey struct {
	SSHKey     SSHKey  `json:"sshKey"`
	PrivateKey *string `json:"privateKey"`
}

var createSSHKey = define[payload[NewSSHKey]](`mutation CreateSSHKey($input: CreateSSHKeyInput!) {
  payload: createSshKey(input: $input) { sshKey { ...sshKeyFields } privateKey }
}`, sshKeyFields)

// CreateSSHKey has the server make a key.
func (c *Client) CreateSSHKey(ctx context.Context, name string) (*NewSSHKey, error) {
	out, err := change(ctx, c, createSSHKey, vars{"name": name})
	return &out, err
}

var addSSHKey = define[payload[NewSSHKey]](`mutation AddSSHKey($input: AddSSHKeyInput!) {
  payload: addSshKey(input: $input) { sshKey { ...sshKeyFields } privateKey }
}`, sshKeyFields)

// AddSSHKey adds a public key, a line as in authorized_keys.
func (c *Client) AddSSHKey(ctx context.Context, name, public string) (*SSHKey, error) {
	out, err := change(ctx, c, addSSHKey, vars{"name": name, "publicKey": public})
	return &out.SSHKey, err
}

var deleteSSHKey = define[payload[idOf]](`mutation DeleteSSHKey($input: DeleteSSHKeyInput!) {
  payload: deleteSshKey(input: $input) { id }
}`)

// DeleteSSHKey removes a key; what it opened stays open.
func (c *Client) DeleteSSHKey(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteSSHKey, idOf{id})
	return err
}
