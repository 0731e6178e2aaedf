package session

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/cmd/berth/cli"
)

// Users name dependencies and agents, and the request has their IDs.
func TestCreateSaysWhenAndWhere(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":{"id":"s1","name":"prepare","status":"RUNNING"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("Agents", `{"agents":{"edges":[{"node":{"id":"a1","name":"node-1"}}],"pageInfo":{"hasNextPage":false}}}`)
	type input struct {
		StartsAt     time.Time
		DependsOn    []string
		Agents       []string
		StrictAgents bool
	}
	var asked input
	f.Answer["CreateSession"] = func(raw json.RawMessage) string {
		var vars struct{ Input input }
		if err := json.Unmarshal(raw, &vars); err != nil {
			t.Error(err)
		}
		asked = vars.Input
		return `{"payload":{"session":{"id":"s2","name":"train","status":"PENDING"}}}`
	}
	r := f.Run("run", "python:3.11", "--detach", "--start", "2031-01-31T08:00:00Z", "--after", "prepare", "--agent", "node-1", "--only-agents", "--", "true")
	want := input{time.Date(2031, 1, 31, 8, 0, 0, 0, time.UTC), []string{"s1"}, []string{"a1"}, true}
	if diff := cmp.Diff(want, asked); r.Code != 0 || diff != "" {
		t.Errorf("%+v\n%s", r, diff)
	}
	if r := f.Run("run", "python:3.11", "--start", "tomorrow", "--", "true"); r.Code != 125 || !strings.Contains(r.Errors, "--start tomorrow") {
		t.Errorf("%+v", r)
	}
}

func TestStartIsATimeOrAWhile(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2h30m":            now.Add(150 * time.Minute),
		"2026-03-05T08:30": time.Date(2026, 3, 5, 8, 30, 0, 0, time.Local),
		"2026-03-05 08:30": time.Date(2026, 3, 5, 8, 30, 0, 0, time.Local),
	} {
		if got, err := parseStart(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestCreateWithApps(t *testing.T) {
	f := newServer(t)
	asked := ""
	f.Answer["CreateSession"] = func(raw json.RawMessage) string {
		var vars struct {
			Input struct{ Apps json.RawMessage }
		}
		if err := json.Unmarshal(raw, &vars); err != nil {
			t.Error(err)
		}
		asked = string(vars.Input.Apps)
		return `{"payload":{"session":{"id":"s2","name":"train","status":"PENDING"}}}`
	}
	r := f.Run("session", "create", "python:3.11", "--app", "board=6006", "--app", "docs=8000:python3 -m http.server {port}, now: yes")
	want := `[{"name":"board","port":6006},{"name":"docs","port":8000,"command":["/bin/sh","-c","python3 -m http.server {port}, now: yes"]}]`
	if r.Code != 0 || asked != want {
		t.Errorf("%+v asked %s, want %s", r, asked, want)
	}
	for _, bad := range []string{"board", "=80", "board=", "board=0", "board=65536", "board=x:y", "board=80:", "board=80: "} {
		if r := f.Run("session", "create", "python:3.11", "--app", bad); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "NAME=PORT") {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}

func TestCreateOpensAnApp(t *testing.T) {
	f := newServer(t)
	f.Data("CreateSession", `{"payload":{"session":{"id":"s2","name":"train","status":"PENDING"}}}`)
	asked := ""
	f.Answer["OpenApp"] = func(raw json.RawMessage) string {
		asked = string(raw)
		return `{"payload":{"url":"https://x.example/?ticket=t","address":"https://x.example/","expiresAt":"2026-03-04T12:00:30Z"}}`
	}
	for args, want := range map[string]string{
		"":                 `{"input":{"session":"s2","app":"jupyterlab"}}`,
		" -v data":         `{"input":{"session":"s2","app":"jupyterlab","folder":"/home/work/data"}}`,
		" -v data:/mnt:ro": `{"input":{"session":"s2","app":"jupyterlab","folder":"/mnt"}}`,
	} {
		r := f.Run(strings.Fields("session create jupyter:4.6 --open jupyterlab" + args)...)
		if r.Code != 0 || r.Out != "train\nhttps://x.example/?ticket=t\n" || asked != want {
			t.Errorf("%q: %+v asked %s, want %s", args, r, asked, want)
		}
	}
	if r := f.Run("session", "create", "jupyter:4.6", "--open", "jupyterlab", "-o", "json"); r.Code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
}
