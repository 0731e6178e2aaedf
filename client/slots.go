package client

import "encoding/json"

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
