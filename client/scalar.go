package client

import (
	"encoding/json"
	"strings"
)

// Enum is a value of an enum of the API, such as RUNNING. schema.graphql lists the values
// of each enum. In inputs, the letters can have either case.
type Enum string

// String returns the value in lower case, as commands show and accept it.
func (e Enum) String() string { return strings.ToLower(string(e)) }

// MarshalJSON writes the value in capitals, as in the schema.
func (e Enum) MarshalJSON() ([]byte, error) { return json.Marshal(strings.ToUpper(string(e))) }

// Enums returns the values of words in either case.
func Enums(words []string) []Enum {
	var values []Enum
	for _, w := range words {
		values = append(values, Enum(strings.ToUpper(w)))
	}
	return values
}

// Slots are amounts by the name of a slot, as decimal numbers: {"cpu": "0.5", "mem": "4g"}.
// The server returns memory and disk in bytes.
type Slots map[string]string

// MarshalJSON writes an object, also for nil: no slots.
func (s Slots) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]string(s))
}
