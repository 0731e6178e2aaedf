package image

import "github.com/berthhq/berth/ent"

// CreateRegistryInput is what a new registry is made of.
type CreateRegistryInput struct {
	Name      string
	Host      string
	PlainHTTP *bool
	Username  *string
	Password  *string
}

// RegistryPayload is a registry after a change.
type RegistryPayload struct{ Registry *ent.Registry }
