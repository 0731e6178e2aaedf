package modelmock

import (
	"encoding/json"
	"strings"
)

// tool is a function that a model can call.
type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// format is the form that an answer must have.
type format struct {
	Type   string `json:"type"`
	Schema struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// fill returns an answer of the form with the words; "" if the form is free.
func (f *format) fill(words string) string {
	switch f.Type {
	case "json_schema":
		return filled(f.Schema.Schema, words)
	case "json_object":
		return filled(json.RawMessage(`{"properties": {"answer": {}}}`), words)
	}
	return ""
}

// called returns the tool that the answer calls, nil for none: the one that the request chooses, the first one if
// a call is required, or one whose name is in the last message.
func (q *question) called(last []string) *tool {
	var choice string
	var chosen tool
	if json.Unmarshal(q.ToolChoice, &choice) != nil {
		_ = json.Unmarshal(q.ToolChoice, &chosen)
	}
	if q.kind != chat || choice == "none" {
		return nil
	}
	text := strings.Join(last, " ")
	for i, t := range q.Tools {
		name := t.Function.Name
		if choice == "required" || name == chosen.Function.Name || chosen.Function.Name == "" && strings.Contains(text, name) {
			return &q.Tools[i]
		}
	}
	return nil
}

// pieces cuts a text into tokens of up to 8 bytes, so that a stream has it in several chunks.
func pieces(text string) []string {
	const size = 8
	var out []string
	for len(text) > size {
		n := size
		for n > 1 && text[n]&0xC0 == 0x80 { // no character is cut
			n--
		}
		out, text = append(out, text[:n]), text[n:]
	}
	return append(out, text)
}

// call returns the call of an answer that is not a stream.
func (a *answer) call(arguments string) []any {
	return []any{map[string]any{
		"id": "call-" + a.id, "type": "function",
		"function": map[string]string{"name": a.tool.Function.Name, "arguments": arguments},
	}}
}

// callDelta returns a part of a call in a stream. Only the first part has the name.
func (a *answer) callDelta(i int, arguments string) []any {
	part := map[string]any{"index": 0, "function": map[string]string{"arguments": arguments}}
	if i == 0 {
		part["id"], part["type"] = "call-"+a.id, "function"
		part["function"] = map[string]string{"name": a.tool.Function.Name, "arguments": arguments}
	}
	return []any{part}
}
