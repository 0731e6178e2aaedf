package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a session waits for, and where it is to run, is said by name and asked by id.
func TestCreateSaysWhenAndWhere(t *testing.T) {
	f := newFake(t)
	f.data("Sessions", `{"sessions":{"edges":[{"node":{"id":"s1","name":"prepare","status":"running"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.data("Agents", `{"agents":{"edges":[{"node":{"id":"a1","name":"node-1"}}],"pageInfo":{"hasNextPage":false}}}`)
	type input struct {
		StartsAt     time.Time
		DependsOn    []string
		Agents       []string
		StrictAgents bool
	}
	var asked input
	f.answer["CreateSession"] = func(raw json.RawMessage) string {
		var vars struct{ Input input }
		if err := json.Unmarshal(raw, &vars); err != nil {
			t.Error(err)
		}
		asked = vars.Input
		return `{"payload":{"session":{"id":"s2","name":"train","status":"pending"}}}`
	}
	r := f.berth("run", "python:3.11", "--detach", "--start", "2031-01-31T08:00:00Z", "--after", "prepare", "--agent", "node-1", "--only-agents", "--", "true")
	want := input{time.Date(2031, 1, 31, 8, 0, 0, 0, time.UTC), []string{"s1"}, []string{"a1"}, true}
	if diff := cmp.Diff(want, asked); r.code != 0 || diff != "" {
		t.Errorf("%+v\n%s", r, diff)
	}
	if r := f.berth("run", "python:3.11", "--start", "tomorrow", "--", "true"); r.code != 125 || !strings.Contains(r.errors, "--start tomorrow") {
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

func TestGroupOptions(t *testing.T) {
	f := newFake(t)
	f.data("ResourceGroups", `{"resourceGroups":{"edges":[{"node":{"id":"g1","name":"lab"}}],"pageInfo":{"hasNextPage":false}}}`)
	var asked map[string]map[string]any
	f.answer["UpdateResourceGroup"] = func(raw json.RawMessage) string {
		asked = nil
		if err := json.Unmarshal(raw, &asked); err != nil {
			t.Error(err)
		}
		return `{"payload":{"resourceGroup":{"id":"g1","name":"lab"}}}`
	}
	for while, seconds := range map[string]float64{"10m": 600, "never": -1, "0s": 0} {
		r := f.berth("admin", "group", "update", "lab", "--strategy", "pack", "--order", "drf", "--hold-after", while)
		want := map[string]any{"id": "g1", "strategy": "pack", "order": "drf", "holdAfter": seconds}
		if diff := cmp.Diff(want, asked["input"]); r.code != 0 || diff != "" {
			t.Errorf("%s: %+v\n%s", while, r, diff)
		}
	}
	for networks, want := range map[string][]any{"10.1.0.0/16,10.1.2.3:443": {"10.1.0.0/16", "10.1.2.3:443"}, "": {}} {
		r := f.berth("admin", "group", "update", "lab", "--allow-networks", networks)
		if diff := cmp.Diff(map[string]any{"id": "g1", "allowedNetworks": want}, asked["input"]); r.code != 0 || diff != "" {
			t.Errorf("networks %q: %+v\n%s", networks, r, diff)
		}
	}
	if r := f.berth("admin", "group", "update", "lab", "--hold-after", "-5m"); r.code != 2 {
		t.Errorf("%+v", r)
	}
}
