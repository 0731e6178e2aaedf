package driver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type common struct {
	URL string `json:"url" required:"true" pattern:"^https://" about:"where"`
}

type sample struct {
	common
	Age    time.Duration `json:"age" min:"1" max:"60" about:"how old"`
	Size   int64         `json:"size" min:"0" max:"10" about:"how large"`
	Share  float64       `json:"share" max:"1" about:"of all"`
	On     bool          `json:"on" about:"whether"`
	Mode   string        `json:"mode" enum:"fast,safe" about:"how"`
	Names  []string      `json:"names" pattern:"^[a-z]+$" about:"which"`
	Secret driver.Secret `json:"password_file" about:"who"`
}

func TestDecode(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, open, empty := file("good", "pass\n", 0o640), file("open", "pass", 0o644), file("empty", "\n", 0o600)
	const url = `{"url": "https://x", `
	for name, row := range map[string]struct{ text, want string }{
		"all":                  {url + `"age": "1m", "size": 10, "share": 0.5, "on": true, "mode": "safe", "names": ["a", "b"], "password_file": "` + good + `"}`, ""},
		"least":                {`{"url": "https://x"}`, ""},
		"required":             {`{}`, "url: is required"},
		"nothing":              {``, "url: is required"},
		"unknown":              {url + `"nope": 1}`, "nope: this option does not exist"},
		"in other letter case": {url + `"Size": 1}`, "Size: this option does not exist"},
		"unexported":           {url + `"inner": 1}`, "inner: this option does not exist"},
		"twice":                {url + `"size": 1, "size": 2}`, "size: is given twice"},
		"null":                 {url + `"size": null}`, "size: want a whole number"},
		"fraction":             {url + `"size": 1.5}`, "size: want a whole number"},
		"text for number":      {url + `"size": "1"}`, "size: want a whole number"},
		"number for text":      {url + `"mode": 1}`, "mode: want a string"},
		"above":                {url + `"size": 11}`, "size: 11 is above 10"},
		"below":                {url + `"size": -1}`, "size: -1 is below 0"},
		"no number at all":     {url + `"share": 1e999}`, "share: want a number"},
		"no boolean":           {url + `"on": "yes"}`, "on: want true or false"},
		"seconds":              {url + `"age": 30}`, "age: want a duration"},
		"too old":              {url + `"age": "2m"}`, "age: 120 seconds is above 60"},
		"no choice":            {url + `"mode": "slow"}`, "mode: must be one of fast, safe"},
		"no list":              {url + `"names": "a"}`, "names: want a list"},
		"bad item":             {url + `"names": ["a", "B"]}`, "names: [1]: does not match"},
		"pattern":              {`{"url": "http://x"}`, "url: does not match"},
		"long":                 {url + `"mode": "` + strings.Repeat("x", 5000) + `"}`, "mode: 5000 bytes"},
		"no file":              {url + `"password_file": "/nonexistent/x"}`, "password_file: secret: "},
		"relative file":        {url + `"password_file": "secret"}`, "password_file: must be the absolute path of a file"},
		"readable by everyone": {url + `"password_file": "` + open + `"}`, "password_file: secret: " + open + " has the mode 0644"},
		"empty file":           {url + `"password_file": "` + empty + `"}`, "is empty"},
		"array":                {`[]`, "not a JSON object"},
		"more":                 {`{"url": "https://x"} {}`, "text after the object"},
		"cut":                  {`{"url": "https://x"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := sample{Age: 30 * time.Second, Mode: "fast"}
			err := driver.Decode(row.text, &o)
			if row.want == "" && name != "cut" {
				if err != nil || o.URL != "https://x" {
					t.Errorf("%+v, %v", o, err)
				}
				return
			}
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

// A secret in the wrong option is not part of the error.
func TestErrorsDoNotShowValues(t *testing.T) {
	err := driver.Decode(`{"url": "hunter2", "password_file": "hunter2"}`, &sample{})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestSchema(t *testing.T) {
	var s struct {
		Additional bool                      `json:"additionalProperties"`
		Required   []string                  `json:"required"`
		Properties map[string]map[string]any `json:"properties"`
	}
	if err := json.Unmarshal([]byte(driver.Schema(sample{Age: 30 * time.Second, Mode: "fast"})), &s); err != nil {
		t.Fatal(err)
	}
	if s.Additional || len(s.Required) != 1 || s.Required[0] != "url" || len(s.Properties) != 8 {
		t.Errorf("%+v", s)
	}
	for name, want := range map[string]map[string]any{
		"age":  {"type": "string", "default": "30s", "x-maximum-seconds": 60.0},
		"size": {"type": "integer", "minimum": 0.0, "maximum": 10.0, "default": nil},
		"mode": {"type": "string", "default": "fast"},
		"url":  {"pattern": "^https://"},
	} {
		for key, v := range want {
			if got := s.Properties[name][key]; got != v {
				t.Errorf("%s: %s is %v, want %v", name, key, got, v)
			}
		}
	}
}

func TestWhatCannotBeOptions(t *testing.T) {
	for name, v := range map[string]any{
		"no text": struct {
			A int `json:"a"`
		}{},
		"no kind": struct {
			A map[string]int `json:"a" about:"x"`
		}{},
		"secret without _file": struct {
			A driver.Secret `json:"password" about:"x"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			driver.Schema(v)
		}()
	}
}
