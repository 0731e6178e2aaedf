package inference

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// An accepted body is valid JSON. The engine reads the same model as the router. The router changes only the
// option for the usage.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","stream":true}`, `{"stream":true,"model":"m","stream_options":{"include_usage":false,"x":[1,{"a":null}]},"z":"}"}`,
		`{"model":"m","MODEL":"n"}`, `{"model":"m","mode\u006c":"n"}`, `{ "model" : "m" , "stream" : true , "stream_options" : null }`,
		`{"a:":1,"model":"m","b":[[],{}],"stream":true}`,
	} {
		f.Add([]byte(seed), "")
		f.Add([]byte(seed), "m")
	}
	f.Add([]byte(`{}`), "m")
	f.Add([]byte(`{}`), "\xc2")
	f.Add([]byte(` { "stream" : true } `), `"}`)
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		b, err := readBody(bytes.NewReader(raw), int64(len(raw)), apis[0], name)
		if err != nil {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(raw, &before); err != nil {
			t.Fatalf("accepted, but not JSON: %v", err)
		}
		if err := json.Unmarshal(b.bytes, &after); err != nil {
			t.Fatalf("the engine gets %q, which is not JSON: %v", b.bytes, err)
		}
		if after["model"] != b.model || name != "" && b.model != name {
			t.Fatalf("the engine reads the model %v, the router %q, the address has %q", after["model"], b.model, name)
		}
		if before["model"] == nil {
			before["model"] = name
		}
		if b.stream {
			options, _ := after["stream_options"].(map[string]any)
			if options["include_usage"] != true {
				t.Fatalf("the engine does not get include_usage: %q", b.bytes)
			}
		}
		delete(before, "stream_options")
		delete(after, "stream_options")
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("the body changed from %q to %q", raw, b.bytes)
		}
	})
}
