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
