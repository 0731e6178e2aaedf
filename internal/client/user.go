package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

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
	Policies    []Attachment   `json:"policies"`
	Occupied    resource.Slots `json:"occupied"`
}

const userFields = `fragment userFields on User {
  id email username fullName role status createdAt lastLoginAt domain { id name }
  policies { ...attachmentFields } occupied
}`

// UserDetail is a user with what only few may see.
type UserDetail struct {
	User
	Account *struct {
		AllowedAddresses       []string   `json:"allowedAddresses"`
		ContainerUID           *int       `json:"containerUid"`
		ContainerGID           *int       `json:"containerGid"`
		ContainerGIDs          []int      `json:"containerGids"`
		PasswordChangeRequired bool       `json:"passwordChangeRequired"`
		PasswordChangedAt      *time.Time `json:"passwordChangedAt"`
		TOTPEnabledAt          *time.Time `json:"totpEnabledAt"`
	} `json:"account"`
	Memberships []struct {
		Admin   bool `json:"admin"`
		Project Ref  `json:"project"`
	} `json:"memberships"`
	RoleGrants []struct {
		ID      string  `json:"id"`
		Role    Ref     `json:"role"`
		Scope   string  `json:"scope"`
		ScopeID *string `json:"scopeId"`
	} `json:"roleGrants"`
}

var showUser = define[struct {
	Node *UserDetail `json:"node"`
}](`query User($id: ID!) {
  node(id: $id) { ... on User {
    ...userFields
    account { allowedAddresses containerUid containerGid containerGids passwordChangeRequired passwordChangedAt totpEnabledAt }
    memberships { admin project { id name } }
    roleGrants { id role { id name } scope scopeId }
  } }
}`, userFields, attachmentFields)

// User reads one user by id.
func (c *Client) User(ctx context.Context, id string) (*UserDetail, error) {
	out, err := showUser.run(ctx, c, vars{"id": id})
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("user", id)
	}
	return out.Node, nil
}

// UserFilter narrows a list of users; zero values do not. Name is an e-mail or
// a username.
type UserFilter struct{ ID, Name, Role, Status string }

var listUsers = define[struct {
	Users connection[User] `json:"users"`
}](`query Users($first: Int, $after: Cursor, $where: UserWhereInput) {
  users(first: $first, after: $after, where: $where, orderBy: [{ field: EMAIL }]) {
    edges { node { ...userFields } } pageInfo { hasNextPage endCursor }
  }
}`, userFields, attachmentFields)

// Users lists users in sight.
func (c *Client) Users(ctx context.Context, f UserFilter) ([]User, error) {
	where := vars{}
	put(where, "id", f.ID)
	put(where, "role", f.Role)
	put(where, "status", f.Status)
	if f.Name != "" {
		where["or"] = []vars{{"email": f.Name}, {"username": f.Name}}
	}
	return collect(0, vars{"where": where}, func(v vars) (connection[User], error) {
		out, err := listUsers.run(ctx, c, v)
		return out.Users, err
	})
}

// CreateUserInput is a new user; Domain, Projects and Policy are ids.
type CreateUserInput struct {
	Email    string   `json:"email"`
	Username string   `json:"username,omitempty"`
	FullName string   `json:"fullName,omitempty"`
	Password string   `json:"password"`
	Role     string   `json:"role,omitempty"`
	Domain   string   `json:"domain"`
	Projects []string `json:"projects,omitempty"`
	Policy   string   `json:"policy,omitempty"`
}

type userPayload struct {
	User User `json:"user"`
}

var createUser = define[payload[userPayload]](`mutation CreateUser($input: CreateUserInput!) {
  payload: createUser(input: $input) { user { ...userFields } }
}`, userFields, attachmentFields)

// CreateUser makes a user.
func (c *Client) CreateUser(ctx context.Context, in CreateUserInput) (*User, error) {
	out, err := change(ctx, c, createUser, in)
	return &out.User, err
}

// UpdateUserInput changes what is set; Policy is an id.
type UpdateUserInput struct {
	ID                     string    `json:"id"`
	FullName               *string   `json:"fullName,omitempty"`
	Username               *string   `json:"username,omitempty"`
	Role                   string    `json:"role,omitempty"`
	Status                 string    `json:"status,omitempty"`
	Policy                 string    `json:"policy,omitempty"`
	ClearPolicy            bool      `json:"clearPolicy,omitempty"`
	ContainerUID           *int      `json:"containerUid,omitempty"`
	ContainerGID           *int      `json:"containerGid,omitempty"`
	ContainerGIDs          *[]int    `json:"containerGids,omitempty"`
	ClearContainer         *bool     `json:"clearContainer,omitempty"`
	AllowedAddresses       *[]string `json:"allowedAddresses,omitempty"`
	PasswordChangeRequired *bool     `json:"passwordChangeRequired,omitempty"`
	KeepCredentials        bool      `json:"keepCredentials,omitempty"`
}

var updateUser = define[payload[userPayload]](`mutation UpdateUser($input: UpdateUserInput!) {
  payload: updateUser(input: $input) { user { ...userFields } }
}`, userFields, attachmentFields)

// UpdateUser changes a user.
func (c *Client) UpdateUser(ctx context.Context, in UpdateUserInput) (*User, error) {
	out, err := change(ctx, c, updateUser, in)
	return &out.User, err
}

// UpdateProfileInput changes oneself; what is nil stays.
type UpdateProfileInput struct {
	FullName         *string   `json:"fullName,omitempty"`
	AllowedAddresses *[]string `json:"allowedAddresses,omitempty"`
}

var updateProfile = define[payload[userPayload]](`mutation UpdateProfile($input: UpdateProfileInput!) {
  payload: updateProfile(input: $input) { user { ...userFields } }
}`, userFields, attachmentFields)

// UpdateProfile changes oneself.
func (c *Client) UpdateProfile(ctx context.Context, in UpdateProfileInput) (*User, error) {
	out, err := change(ctx, c, updateProfile, in)
	return &out.User, err
}

var resetTOTP = define[payload[userPayload]](`mutation ResetTotp($input: ResetTotpInput!) {
  payload: resetTotp(input: $input) { user { ...userFields } }
}`, userFields, attachmentFields)

// ResetTOTP turns off the second factor of someone who lost it.
func (c *Client) ResetTOTP(ctx context.Context, user string) (*User, error) {
	out, err := change(ctx, c, resetTOTP, vars{"user": user})
	return &out.User, err
}

// PurgeUserInput says whom to remove, and what becomes of their folders: FoldersTo
// gets them, or they are deleted. Ids.
type PurgeUserInput struct {
	ID            string `json:"id"`
	FoldersTo     string `json:"foldersTo,omitempty"`
	DeleteFolders bool   `json:"deleteFolders,omitempty"`
}

var purgeUser = define[payload[taskPayload]](`mutation PurgeUser($input: PurgeUserInput!) {
  payload: purgeUser(input: $input) { task { ...taskFields } }
}`, taskFields)

// PurgeUser removes a user who is not active, by a task.
func (c *Client) PurgeUser(ctx context.Context, in PurgeUserInput) (*Task, error) {
	out, err := change(ctx, c, purgeUser, in)
	return &out.Task, err
}

// PasswordReset is a user with the password that was made, if it was not given.
type PasswordReset struct {
	User     User    `json:"user"`
	Password *string `json:"password"`
}

var resetPassword = define[payload[PasswordReset]](`mutation ResetUserPassword($input: ResetUserPasswordInput!) {
  payload: resetUserPassword(input: $input) { user { ...userFields } password }
}`, userFields, attachmentFields)

// ResetPassword gives someone else a password that must be changed; with ""
// the server makes one. With keep the user's access tokens, keypairs and SSH keys
// stay as they are.
func (c *Client) ResetPassword(ctx context.Context, user, password string, keep bool) (*PasswordReset, error) {
	in := vars{"user": user}
	if keep {
		in["keepCredentials"] = true
	}
	put(in, "password", password)
	out, err := change(ctx, c, resetPassword, in)
	return &out, err
}

// ImportUsersInput is a CSV file of users; Domain and Projects are ids.
type ImportUsersInput struct {
	Domain    string   `json:"domain"`
	CSV       string   `json:"csv"`
	Projects  []string `json:"projects,omitempty"`
	DryRun    bool     `json:"dryRun,omitempty"`
	Passwords string   `json:"passwords,omitempty"`
}

// Import is what came of the rows of a file.
type Import struct {
	Results []struct {
		Row      int     `json:"row"`
		Email    string  `json:"email"`
		Status   string  `json:"status"`
		Error    *string `json:"error"`
		Field    *string `json:"field"`
		Password *string `json:"password"`
	} `json:"results"`
	Created int `json:"created"`
	Skipped int `json:"skipped"`
	Failed  int `json:"failed"`
}

var importUsers = define[payload[Import]](`mutation ImportUsers($input: ImportUsersInput!) {
  payload: importUsers(input: $input) { results { row email status error field password } created skipped failed }
}`)

// ImportUsers makes the users of a file; a wrong row does not stop the others.
func (c *Client) ImportUsers(ctx context.Context, in ImportUsersInput) (*Import, error) {
	out, err := change(ctx, c, importUsers, in)
	return &out, err
}
