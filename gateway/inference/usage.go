package inference

import (
	"bytes"
	"encoding/json"
)

// Usage is the number of tokens of one answer, as the engine counted them.
type Usage struct {
	Prompt     int
	Completion int
	Cached     int // of the prompt
}

// counts are the numbers of OpenAI's completions, its responses, and Anthropic's messages.
type counts struct {
	Prompt      int     `json:"prompt_tokens"`
	Completion  int     `json:"completion_tokens"`
	Input       int     `json:"input_tokens"`
	Output      int     `json:"output_tokens"`
	CacheRead   int     `json:"cache_read_input_tokens"`
	PromptParts details `json:"prompt_tokens_details"`
	InputParts  details `json:"input_tokens_details"`
}

type details struct {
	Cached int `json:"cached_tokens"`
}

// holder is an object that can have counts.
type holder struct {
	Usage *counts `json:"usage"`
}

// read takes the usage that a JSON object of an answer has, and reports whether it has one. A stream of
// messages has the prompt in its first event and the answer in a later one, so the larger number counts.
func (u *Usage) read(object []byte) bool {
	if !bytes.Contains(object, []byte(`"usage"`)) && !bytes.Contains(object, []byte(`eval_count"`)) {
		return false
	}
	var in struct {
		holder
		Message  holder `json:"message"`  // Anthropic: message_start
		Response holder `json:"response"` // OpenAI: response.completed
	}
	if json.Unmarshal(object, &in) != nil {
		return u.readCounts(object)
	}
	found := false
	for _, c := range []*counts{in.Usage, in.Message.Usage, in.Response.Usage} {
		if c == nil {
			continue
		}
		found = true
		u.Prompt = max(u.Prompt, c.Prompt, c.Input)
		u.Completion = max(u.Completion, c.Completion, c.Output)
		u.Cached = max(u.Cached, c.PromptParts.Cached, c.InputParts.Cached, c.CacheRead)
	}
	return u.readCounts(object) || found
}

// readCounts takes the counts of Ollama, whose other fields have other types.
func (u *Usage) readCounts(object []byte) bool {
	var in struct {
		Prompt     *int `json:"prompt_eval_count"`
		Completion *int `json:"eval_count"`
	}
	if json.Unmarshal(object, &in) != nil || in.Prompt == nil && in.Completion == nil {
		return false
	}
	if in.Prompt != nil {
		u.Prompt = max(u.Prompt, *in.Prompt)
	}
	if in.Completion != nil {
		u.Completion = max(u.Completion, *in.Completion)
	}
	return true
}

// onlyUsage reports whether a chunk of a stream has no choice, so that it exists for its usage.
func onlyUsage(object []byte) bool {
	var in struct {
		Choices []json.RawMessage `json:"choices"`
	}
	return json.Unmarshal(object, &in) == nil && len(in.Choices) == 0
}
