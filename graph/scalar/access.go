package scalar

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"github.com/berthhq/berth/internal/access"
)

func marshal[S ~string](s S) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(string(s))) })
}

func unmarshal[S ~string](v any, what string, known []S) (S, error) {
	if s, ok := v.(string); ok && slices.Contains(known, S(s)) {
		return S(s), nil
	}
	return "", fmt.Errorf("%v is not %s", v, what)
}

// MarshalTokenScope writes a scope of an access token.
func MarshalTokenScope(s access.TokenScope) graphql.Marshaler { return marshal(s) }

// UnmarshalTokenScope reads a scope of an access token.
func UnmarshalTokenScope(v any) (access.TokenScope, error) {
	return unmarshal(v, "a scope", access.TokenScopes())
}

// MarshalOperation writes an operation of a permission.
func MarshalOperation(o access.Operation) graphql.Marshaler { return marshal(o) }

// UnmarshalOperation reads an operation of a permission.
func UnmarshalOperation(v any) (access.Operation, error) {
	return unmarshal(v, "an operation", access.Operations())
}

// MarshalEntity writes a kind of object.
func MarshalEntity(e access.Entity) graphql.Marshaler { return marshal(e) }

// UnmarshalEntity reads a kind of object.
func UnmarshalEntity(v any) (access.Entity, error) {
	return unmarshal(v, "an entity", access.Entities())
}

// MarshalVolumePermission writes a permission on a volume.
func MarshalVolumePermission(p access.VolumePermission) graphql.Marshaler { return marshal(p) }

// UnmarshalVolumePermission reads a permission on a volume.
func UnmarshalVolumePermission(v any) (access.VolumePermission, error) {
	return unmarshal(v, "a permission", access.VolumePermissions())
}
