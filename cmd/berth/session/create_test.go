package session

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a session waits for, and where it is to run, is said by name and asked by id.
func TestCreateSaysWhenAndWhere(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":{"id":"s1","name":"prepare","status":"running"}}],"pageInfo":{"hasNextPage":false}}}`)
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
		return `{"payload":{"session":{"id":"s2","name":"train","status":"pending"}}}`
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
