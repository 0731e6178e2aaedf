package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Viewer is the user that asks.
type Viewer struct {
	User            User  `json:"user"`
	InitialPassword bool  `json:"initialPassword"`
	Projects        []Ref `json:"projects"`
	ResourceGroups  []Ref `json:"resourceGroups"`
}

// User is a person with a login.
type User struct {
	ID          string         `json:"id"`
	Email       string         `json:"email"`
	Username    string         `json:"username"`
	FullName    string         `json:"fullName"`
	Role        string         `json:"role"`
	Status      string         `json:"status"`
	CreatedAt   time.Time      `json:"createdAt"`
	LastLoginAt *time.Time     `json:"lastLoginAt"`
	Domain      Ref            `json:"domain"`
	Occupied    resource.Slots `json:"occupied"`
}

const userFields = `fragment userFields on User {
  id email username fullName role status createdAt lastLoginAt domain { id name } occupied
}`

var whoAmI = define[struct {
	Viewer Viewer `json:"viewer"`
}](`query Viewer {
  viewer { user { ...userFields } initialPassword projects { id name } resourceGroups { id name } }
}`, userFields)

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

// AccessToken is a token without its secret.
type AccessToken struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Prefix    string     `json:"prefix"`
	ExpiresAt *time.Time `json:"expiresAt"`
}

var createToken = define[struct {
	CreateAccessToken struct {
		AccessToken AccessToken `json:"accessToken"`
		Secret      *string     `json:"secret"`
	} `json:"createAccessToken"`
}](`mutation CreateAccessToken($input: CreateAccessTokenInput!) {
  createAccessToken(input: $input) { accessToken { id name prefix expiresAt } secret }
}`)

// CreateAccessToken makes a token; a zero expiry means none.
func (c *Client) CreateAccessToken(ctx context.Context, name string, expires time.Time) (token AccessToken, secret string, err error) {
	input := vars{"name": name}
	if !expires.IsZero() {
		input["expiresAt"] = expires.UTC()
	}
	out, err := createToken.run(ctx, c, vars{"input": input})
	if err != nil {
		return AccessToken{}, "", err
	}
	if s := out.CreateAccessToken.Secret; s != nil {
		secret = *s
	}
	return out.CreateAccessToken.AccessToken, secret, nil
}

var listTokens = define[struct {
	AccessTokens connection[AccessToken] `json:"accessTokens"`
}](`query AccessTokens($first: Int, $after: Cursor) {
  accessTokens(first: $first, after: $after, where: { revokedAtIsNil: true }) {
    edges { node { id name prefix expiresAt } } pageInfo { hasNextPage endCursor }
  }
}`)

// AccessTokens lists one's tokens that were not revoked.
func (c *Client) AccessTokens(ctx context.Context) ([]AccessToken, error) {
	return collect(0, vars{}, func(v vars) (connection[AccessToken], error) {
		out, err := listTokens.run(ctx, c, v)
		return out.AccessTokens, err
	})
}

var revokeToken = define[struct {
	RevokeAccessToken struct {
		AccessToken AccessToken `json:"accessToken"`
	} `json:"revokeAccessToken"`
}](`mutation RevokeAccessToken($input: RevokeAccessTokenInput!) {
  revokeAccessToken(input: $input) { accessToken { id name prefix expiresAt } }
}`)

// RevokeAccessToken ends a token at once.
func (c *Client) RevokeAccessToken(ctx context.Context, id string) error {
	_, err := revokeToken.run(ctx, c, vars{"input": vars{"id": id}})
	return err
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

// ChangePassword sets one's own password.
func (c *Client) ChangePassword(ctx context.Context, current, next string) error {
	_, err := changePassword.run(ctx, c, vars{"input": vars{"current": current, "new": next}})
	return err
}

var listUsers = define[struct {
	Users connection[User] `json:"users"`
}](`query Users($first: Int, $after: Cursor, $where: UserWhereInput) {
  users(first: $first, after: $after, where: $where, orderBy: [{ field: EMAIL }]) {
    edges { node { ...userFields } } pageInfo { hasNextPage endCursor }
  }
}`, userFields)

// Users lists users in sight; email "" means all.
func (c *Client) Users(ctx context.Context, email string) ([]User, error) {
	where := vars{}
	if email != "" {
		where["email"] = email
	}
	return collect(0, vars{"where": where}, func(v vars) (connection[User], error) {
		out, err := listUsers.run(ctx, c, v)
		return out.Users, err
	})
}

// CreateUserInput is a new user; Domain and Projects are ids.
type CreateUserInput struct {
	Email    string   `json:"email"`
	Username string   `json:"username,omitempty"`
	FullName string   `json:"fullName,omitempty"`
	Password string   `json:"password"`
	Role     string   `json:"role,omitempty"`
	Domain   string   `json:"domain"`
	Projects []string `json:"projects,omitempty"`
}

type userPayload struct {
	Payload struct {
		User User `json:"user"`
	} `json:"payload"`
}

var createUser = define[userPayload](`mutation CreateUser($input: CreateUserInput!) {
  payload: createUser(input: $input) { user { ...userFields } }
}`, userFields)

// CreateUser makes a user.
func (c *Client) CreateUser(ctx context.Context, in CreateUserInput) (*User, error) {
	out, err := createUser.run(ctx, c, vars{"input": in})
	return &out.Payload.User, err
}

var updateUser = define[userPayload](`mutation UpdateUser($input: UpdateUserInput!) {
  payload: updateUser(input: $input) { user { ...userFields } }
}`, userFields)

// UpdateUserInput changes what is set.
type UpdateUserInput struct {
	ID       string `json:"id"`
	FullName string `json:"fullName,omitempty"`
	Role     string `json:"role,omitempty"`
	Status   string `json:"status,omitempty"`
}

// UpdateUser changes a user.
func (c *Client) UpdateUser(ctx context.Context, in UpdateUserInput) (*User, error) {
	out, err := updateUser.run(ctx, c, vars{"input": in})
	return &out.Payload.User, err
}
