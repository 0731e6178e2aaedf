// Package scalar marshals the GraphQL scalars that gqlgen does not support.
package scalar

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/99designs/gqlgen/graphql"

	"github.com/berthhq/berth/internal/resource"
)

// MarshalSlots writes an object of decimal strings.
func MarshalSlots(s resource.Slots) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { writeJSON(w, s) })
}

// UnmarshalSlots reads an object whose values are decimals or sizes, as
// strings or numbers.
func UnmarshalSlots(v any) (resource.Slots, error) {
	m, err := UnmarshalStringMap(v)
	if err != nil {
		return nil, fmt.Errorf("slots: %w", err)
	}
	return resource.ParseSlots(m)
}

// MarshalStringMap writes an object of strings.
func MarshalStringMap(m map[string]string) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		if m == nil {
			m = map[string]string{}
		}
		writeJSON(w, m)
	})
}

// UnmarshalStringMap reads an object of strings, numbers and booleans.
func UnmarshalStringMap(v any) (map[string]string, error) {
	if v == nil {
		return nil, nil
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want an object, got %T", v)
	}
	m := make(map[string]string, len(obj))
	for k, value := range obj {
		switch x := value.(type) {
		case string:
			m[k] = x
		case json.Number, int, int64, float64, bool:
			m[k] = fmt.Sprint(x)
		default:
			return nil, fmt.Errorf("value of %q must be a string", k)
		}
	}
	return m, nil
}

func writeJSON(w io.Writer, v any) {
	b, err := json.Marshal(v)
	if err != nil { // maps of strings and numbers always marshal
		b = []byte("null")
	}
	_, _ = w.Write(b)
}

// MarshalInt writes a whole number.
func MarshalInt(n int) graphql.Marshaler { return graphql.MarshalInt(n) }

// UnmarshalInt reads a 32-bit integer, the range of Int in GraphQL.
func UnmarshalInt(v any) (int, error) {
	n, err := graphql.UnmarshalInt(v)
	if err != nil || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%v is not a whole number of 32 bits", v)
	}
	return n, nil
}
