package load

import (
	"encoding/json"
	"time"
)

// Aged returns a stored report as it was stored some time earlier.
func Aged(text string, by time.Duration) string {
	var d dated
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	d.At -= by.Milliseconds()
	out, _ := json.Marshal(d)
	return string(out)
}
