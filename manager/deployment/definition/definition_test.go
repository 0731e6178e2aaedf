package definition

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const example = `
models:
  - name: tiny
    model_path: /models/tiny
    service:
      start_command: [python3, serve.py, --port, 8000]
      port: 8000
      health_check: { path: /ready, max_retries: 3, interval: 0.5, initial_delay: 0 }
      pre_start_actions:
        - { action: mkdir, args: { path: /tmp/cache } }
        - { action: run_command, args: { command: [pip, install, "-r", /models/tiny/requirements.txt] } }
        - { action: write_file, args: { filename: /etc/tiny.conf, mode: "600", body: ["a=1", "b=2"] } }
        - { action: log, args: { message: "$(reboot)" } }
    metadata:
      title: Tiny
      version: 1.2
      framework: [torch]
      label: [text]
      unknown: [1, 2]
  - name: shell
    service: { start_command: "exec serve $PORT", port: 80 }
`

func TestParse(t *testing.T) {
	t.Parallel()
	models, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := []Model{{
		Name: "tiny", Path: "/models/tiny", Command: []string{"python3", "serve.py", "--port", "8000"}, Port: 8000,
		Health: &Health{Path: "/ready", Status: 200, Interval: 500 * time.Millisecond, Timeout: 15 * time.Second, Retries: 3},
		Before: []Action{
			{Kind: MakeDirectory, Path: "/tmp/cache"},
			{Kind: RunCommand, Command: []string{"pip", "install", "-r", "/models/tiny/requirements.txt"}},
			{Kind: WriteFile, Path: "/etc/tiny.conf", Mode: "600", Text: "a=1\nb=2"},
			{Kind: Log, Text: "$(reboot)"},
		},
		Metadata: Metadata{Title: "Tiny", Version: "1.2", Frameworks: []string{"torch"}, Labels: []string{"text"}},
	}, {
		Name: "shell", Path: "/models", Command: []string{"/bin/bash", "-c", "exec serve $PORT"}, Port: 80,
	}}
	if !reflect.DeepEqual(models, want) {
		t.Errorf("got  %+v\nwant %+v", models, want)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	one := func(service string) string { return "models: [{name: m, service: {port: 1, " + service + "}}]" }
	for text, want := range map[string]string{
		"":                                   "models is empty",
		"models: {":                          "the file",
		"models: [{}]":                       "models[0].name is missing",
		"models: [{name: m, model_path: a}]": "models[0].model_path",
		"models: [{name: m, model_path: /a/../b}]":                                                  "models[0].model_path",
		"models: [{name: m, service: {port: 70000}}]":                                               "models[0].service.port 70000",
		one("start_command: {a: b}"):                                                                "start_command is neither",
		one("start_command: []"):                                                                    "start_command is empty",
		one("start_command: [[a]]"):                                                                 "start_command[0] is not a text",
		one("health_check: {path: 'http://10.0.0.1/'}"):                                             "health_check.path",
		one("health_check: {path: '//10.0.0.1/'}"):                                                  "health_check.path",
		one("health_check: {interval: 0}"):                                                          "health_check.interval 0",
		one("health_check: {interval: .nan}"):                                                       "health_check.interval",
		one("health_check: {max_retries: 0}"):                                                       "health_check.max_retries",
		one("pre_start_actions: [{action: exec}]"):                                                  `pre_start_actions[0].action "exec"`,
		one("pre_start_actions: [{action: run_command, args: {command: 'rm -rf /'}}]"):              "args.command is not a list",
		one("pre_start_actions: [{action: write_file, args: {filename: ../a, body: x}}]"):           "args.filename",
		one("pre_start_actions: [{action: write_file, args: {filename: /a, body: x, mode: '+s'}}]"): "args.mode",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Parse(make([]byte, MaxBytes+1)); err == nil {
		t.Error("a large file is accepted")
	}
}

// An alias bomb ends with an error or a small result, and not with all memory.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nmodels: [{name: m, service: {port: 1, start_command: *c}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		models, err := Parse(text)
		if err == nil && len(models) == 0 {
			t.Error("no model and no error")
		}
	})
}
