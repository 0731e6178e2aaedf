package main

import (
	"encoding/json"
	"testing"
)

const queueEntries = `[
  {"position":1,"mine":false,"priority":50,"waitingSince":"2026-03-04T11:50:00Z","stage":"room","why":"It waits for free capacity.","holds":2,"session":null,"order":null,"estimatedStart":"2026-03-04T13:00:00Z"},
  {"position":2,"mine":true,"priority":10,"waitingSince":"2026-03-04T11:56:48Z","stage":"order","why":"No machine can run the session: all 3 are reserved for an earlier session.","holds":0,
    "session":{"id":"s1","name":"train","slots":{"cpu":"1"},"owner":{"id":"u","email":"mina@example.org"}},
    "order":{"order":"drf","levels":[{"scope":"user","usage":0.25,"weight":1,"factor":0.84}]},"estimatedStart":null}]`

func TestQueue(t *testing.T) {
	f := newFake(t)
	f.data("ResourceGroups", `{"resourceGroups":{"edges":[{"node":{"id":"g","name":"default"}},{"node":{"id":"g2","name":"spare"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.answer["Queue"] = func(raw json.RawMessage) string {
		var vars struct{ ID string }
		if err := json.Unmarshal(raw, &vars); err != nil {
			t.Error(err)
		}
		if vars.ID == "g2" {
			return `{"node":{"name":"spare","queue":{"totalCount":0,"entries":[],"endCursor":null}}}`
		}
		return `{"node":{"name":"default","queue":{"totalCount":3,"entries":` + queueEntries + `,"endCursor":"x"}}}`
	}
	r := f.berth("queue", "-n", "2")
	if r.code != 0 || r.errors != "" {
		t.Fatalf("%+v", r)
	}
	golden(t, "queue", r.out)
	golden(t, "queue-json", f.berth("queue", "-n", "2", "-o", "json").out)
}

func TestDryRun(t *testing.T) {
	f := newFake(t)
	f.data("DryRun", `{"dryRun":{"verdict":"now","refusals":[],"resourceGroup":{"id":"g","name":"default"},"agents":[{"id":"a","name":"node-1"}],"pending":null}}`)
	r := f.berth("session", "create", "python:3.11", "--dry-run")
	if want := "It would start at once in the resource group default, on node-1.\n"; r.code != 0 || r.out != want || r.errors != "" {
		t.Errorf("%+v", r)
	}
	f.data("DryRun", `{"dryRun":{"verdict":"waits","refusals":[],"resourceGroup":{"id":"g","name":"default"},"agents":[],`+pendingReport+`}}`)
	if r = f.berth("session", "create", "python:3.11", "--dry-run"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	golden(t, "dry-run", r.out)
	f.data("DryRun", `{"dryRun":{"verdict":"refused","refusals":[{"code":"INVALID_ARGUMENT","message":"must have 1 to 64 characters","field":"name","limit":"1..64"}],"agents":[],"pending":null}}`)
	r = f.berth("session", "create", "python:3.11", "--dry-run")
	if want := "It would be refused:\n  name: must have 1 to 64 characters\n"; r.code != exitInvalid || r.out != want {
		t.Errorf("%+v", r)
	}
	f.data("DryRun", `{"dryRun":{"verdict":"never","refusals":[{"code":"INVALID_ARGUMENT","message":"No machine of the resource group has 4 CPU cores: the most that any machine has is 2.","field":"slots.cpu","limit":"2"}],"agents":[],"pending":null}}`)
	r = f.berth("session", "create", "python:3.11", "--cpu", "4", "--dry-run")
	if want := "No machine could ever run it:\n  slots.cpu: No machine of the resource group has 4 CPU cores: the most that any machine has is 2.\n"; r.code != exitInvalid || r.out != want {
		t.Errorf("%+v", r)
	}
	if n := f.count("CreateSession"); n > 0 {
		t.Errorf("%d sessions were made", n)
	}
}

func TestChangeOfWhatWaits(t *testing.T) {
	f := newFake(t)
	f.data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false}}}`)
	var asked string
	f.answer["UpdatePendingSession"] = func(raw json.RawMessage) string {
		asked = string(raw)
		return `{"payload":{"session":` + sampleSession + `}}}`
	}
	r := f.berth("session", "change", "train", "-r", "mock.shares=0.25", "-r", "mem=0", "--any-agent")
	want := `{"input":{"id":"01908a5e-0000-7000-8000-000000000001","slots":{"cpu":"1","mock.shares":"0.25"},"strictAgents":false}}`
	if r.code != 0 || asked != want {
		t.Errorf("%+v\nasked %s\nwant  %s", r, asked, want)
	}
	if r := f.berth("session", "change", "train"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
}
