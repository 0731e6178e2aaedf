package client

import (
	"context"
	"time"
)

// Keypair is an access key whose secret signs requests.
type Keypair struct {
	ID         string     `json:"id"`
	AccessKey  string     `json:"accessKey"`
	Name       string     `json:"name"`
	Active     bool       `json:"active"`
	IsDefault  bool       `json:"isDefault"`
	RateLimit  *int       `json:"rateLimit"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	RotatedAt  *time.Time `json:"rotatedAt"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	// MakerID is the token or keypair that the secret was made with, and ends with.
	MakerID *string `json:"makerID"`
	Status  string  `json:"status"`
	User    UserRef `json:"user"`
}

const keypairFields = `fragment keypairFields on Keypair {
  id accessKey name active isDefault rateLimit createdAt lastUsedAt rotatedAt expiresAt makerID status user { id email }
}`

var listKeypairs = define[struct {
	Keypairs connection[Keypair] `json:"keypairs"`
}](`query Keypairs($user: ID, $first: Int, $after: Cursor) {
  keypairs(user: $user, first: $first, after: $after, orderBy: [{ field: CREATED_AT }]) {
    edges { node { ...keypairFields } } pageInfo { hasNextPage endCursor }
  }
}`, keypairFields)

// Keypairs lists those of a user by id, "" for one's own.
func (c *Client) Keypairs(ctx context.Context, user string) ([]Keypair, error) {
	v := vars{}
	if user != "" {
		v["user"] = user
	}
	return collect(0, v, func(v vars) (connection[Keypair], error) {
		out, err := listKeypairs.run(ctx, c, v)
		return out.Keypairs, err
	})
}

// NewKeypair is a keypair with the secret that cannot be read again.
type NewKeypair struct {
	Keypair Keypair `json:"keypair"`
	Secret  *string `json:"secret"`
}

// CreateKeypairInput is a new keypair.
type CreateKeypairInput struct {
	Name      string `json:"name"`
	RateLimit *int   `json:"rateLimit,omitempty"`
}

var createKeypair = define[payload[NewKeypair]](`mutation CreateKeypair($input: CreateKeypairInput!) {
  payload: createKeypair(input: $input) { keypair { ...keypairFields } secret }
}`, keypairFields)

// CreateKeypair makes a keypair of one's own.
func (c *Client) CreateKeypair(ctx context.Context, in CreateKeypairInput) (*NewKeypair, error) {
	out, err := change(ctx, c, createKeypair, in)
	return &out, err
}

// UpdateKeypairInput changes what is set.
type UpdateKeypairInput struct {
	ID             string  `json:"id"`
	Name           *string `json:"name,omitempty"`
	Active         *bool   `json:"active,omitempty"`
	MakeDefault    *bool   `json:"makeDefault,omitempty"`
	RateLimit      *int    `json:"rateLimit,omitempty"`
	ClearRateLimit *bool   `json:"clearRateLimit,omitempty"`
}

var updateKeypair = define[payload[NewKeypair]](`mutation UpdateKeypair($input: UpdateKeypairInput!) {
  payload: updateKeypair(input: $input) { keypair { ...keypairFields } secret }
}`, keypairFields)

// UpdateKeypair changes a keypair.
func (c *Client) UpdateKeypair(ctx context.Context, in UpdateKeypairInput) (*Keypair, error) {
	out, err := change(ctx, c, updateKeypair, in)
	return &out.Keypair, err
}

var rotateKeypair = define[payload[NewKeypair]](`mutation RotateKeypair($input: RotateKeypairInput!) {
  payload: rotateKeypair(input: $input) { keypair { ...keypairFields } secret }
}`, keypairFields)

// RotateKeypair gives the keypair a new secret; the old one is dead at once.
func (c *Client) RotateKeypair(ctx context.Context, id string) (*NewKeypair, error) {
	out, err := change(ctx, c, rotateKeypair, idOf{id})
	return &out, err
}

var deleteKeypair = define[payload[idOf]](`mutation DeleteKeypair($input: DeleteKeypairInput!) {
  payload: deleteKeypair(input: $input) { id }
}`)

// DeleteKeypair removes a keypair.
func (c *Client) DeleteKeypair(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteKeypair, idOf{id})
	return err
}
