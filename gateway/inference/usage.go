package inference

import (
	"bytes"
	"encoding/json"
)

// Usage is the number of tokens of one answer, as the engine counted them.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"-"` // of the prompt
}

// usageOf returns the usage in a JSON object, and reports whether it has one.
func usageOf(object []byte) (Usage, bool) {
	var in struct {
		Usage *struct {
			Usage
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	if !bytes.Contains(object, []byte(`"usage"`)) || json.Unmarshal(object, &in) != nil || in.Usage == nil {
		return Usage{}, false
	}
	u := in.Usage.Usage
	u.Cached = in.Usage.Details.Cached
	return u, true
}

// onlyUsage reports whether a chunk of a stream has no choice, so that it exists for its usage.
func onlyUsage(object []byte) bool {
	var in struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(object, &in) == nil && len(in.Choices) == 0
}
