package modelmock

import (
	"encoding/json"
	"strings"
)

// maxSchemaDepth limits the depth of a value that schema.value returns.
const maxSchemaDepth = 6

// schema is the part of a JSON schema that decides which values are accepted.
type schema struct {
	Type       json.RawMessage   `json:"type"`
	Const      any               `json:"const"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	MinItems   int               `json:"minItems"`
	Minimum    float64           `json:"minimum"`
	AnyOf      []schema          `json:"anyOf"`
	OneOf      []schema          `json:"oneOf"`
	Ref        string            `json:"$ref"`
	Defs       map[string]schema `json:"$defs"`
}

// filled returns the JSON text of a value that a schema accepts. Its strings are the text.
func filled(raw json.RawMessage, text string) string {
	var s schema
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &s) // a schema that is not one accepts {}
	}
	value := s.value(s.Defs, text, 0)
	if _, is := value.(map[string]any); !is {
		value = map[string]any{}
	}
	out, _ := json.Marshal(value)
	return string(out)
}

func (s schema) value(defs map[string]schema, text string, depth int) any {
	switch choices := append(s.AnyOf, s.OneOf...); {
	case depth == maxSchemaDepth:
		return nil
	case s.Ref != "":
		return defs[strings.TrimPrefix(s.Ref, "#/$defs/")].value(defs, text, depth+1)
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(choices) > 0:
		return choices[0].value(defs, text, depth+1)
	}
	switch s.kind() {
	case "object":
		out := map[string]any{}
		for name, p := range s.Properties {
			out[name] = p.value(defs, text, depth+1)
		}
		return out
	case "array":
		out := make([]any, 0)
		for range min(max(s.MinItems, 1), 100) {
			if s.Items == nil {
				break
			}
			out = append(out, s.Items.value(defs, text, depth+1))
		}
		return out
	case "integer", "number":
		return s.Minimum
	case "boolean":
		return true
	case "null":
		return nil
	}
	return text
}

// kind returns the type of the values, the first one if there are several.
func (s schema) kind() string {
	var one string
	var list []string
	switch {
	case json.Unmarshal(s.Type, &one) == nil:
	case json.Unmarshal(s.Type, &list) == nil && len(list) > 0:
		one = list[0]
	case s.Properties != nil:
		one = "object"
	}
	return one
}
