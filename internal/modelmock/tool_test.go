package modelmock

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
)

const twoTools = `"tools":[
	{"type":"function","function":{"name":"time","parameters":{"type":"object"}}},
	{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{
		"city":{"type":"string"},"unit":{"enum":["C","F"]},"days":{"type":"integer","minimum":2}}}}}]`

func TestChoiceOfTools(t *testing.T) {
	const named = `{"type":"function","function":{"name":"weather"}}`
	for _, c := range []struct{ choice, text, want string }{
		{`"required"`, "hello", "time"}, {named, "hello", "weather"}, {`"auto"`, "the weather in Paris", "weather"},
		{`"auto"`, "hello", ""}, {`"none"`, "the weather", ""}, {`null`, "the weather", "weather"},
	} {
		var q question
		if err := json.Unmarshal([]byte(`{"tool_choice":`+c.choice+`,`+twoTools+`}`), &q); err != nil {
			t.Fatal(err)
		}
		q.kind = chat
		name := ""
		if called := q.called(strings.Fields(c.text)); called != nil {
			name = called.Function.Name
		}
		if name != c.want {
			t.Errorf("%s, %q: calls %q, want %q", c.choice, c.text, name, c.want)
		}
	}
}

// The parts of a streamed call join to arguments that the schema accepts. Only the first part has the name.
func TestCallInAStream(t *testing.T) {
	_, url := serve(t, Config{})
	resp := post(t, t.Context(), url+"/v1/chat/completions",
		`{"model":"mock","stream":true,"tool_choice":"auto",`+twoTools+`,"messages":[{"role":"user","content":"weather in Köln"}]}`)
	var names, arguments, reason string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Calls []struct {
						Index    *int
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Reason string `json:"finish_reason"`
			}
		}
		data, is := strings.CutPrefix(lines.Text(), "data: {")
		if !is {
			continue
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			t.Fatal(err)
		}
		reason += chunk.Choices[0].Reason
		for _, call := range chunk.Choices[0].Delta.Calls {
			if call.Index == nil || *call.Index != 0 {
				t.Error("a part of the call has no index")
			}
			names += call.Function.Name
			arguments += call.Function.Arguments
		}
	}
	const want = `{"city":"weather in Köln","days":2,"unit":"C"}`
	if names != "weather" || arguments != want || reason != "tool_calls" {
		t.Errorf("name %q, arguments %s, reason %q; want weather, %s, tool_calls", names, arguments, reason, want)
	}
}

func TestValuesOfSchemas(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"array","minItems":2,"items":{"type":"boolean"}}}}`: `{"a":"x","b":[true,true]}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"number"},{"type":"null"}]},"b":{"const":"c"}}}`:                         `{"a":0,"b":"c"}`,
		`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"v":{"type":"integer","minimum":1}}}}}`:                                       `{"v":1}`,
		`{"type":"string"}`: `{}`, `not a schema`: `{}`, ``: `{}`,
	} {
		if got := filled(json.RawMessage(raw), "x"); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	const endless = `{"properties":{"next":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}}}`
	if got := filled(json.RawMessage(endless), "x"); !json.Valid([]byte(got)) || len(got) > 1000 {
		t.Errorf("a schema that refers to itself: %s", got)
	}
}
