package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFolderShare(t *testing.T) {
	f := newFake(t)
	f.data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data"}}],"pageInfo":{}}}`)
	f.data("VfolderShares", `{"node":{"shares":[{"id":"s-1","email":"kim@example.org","permission":"read_only","status":"accepted"}],"myShare":null}}`)
	var changed, invited string
	f.answer["UpdateVfolderShare"] = func(vars json.RawMessage) string {
		changed = string(vars)
		return `{"payload":{"share":{"id":"s-1","email":"kim@example.org","permission":"read_write","status":"accepted"}}}`
	}
	f.answer["ShareVfolder"] = func(vars json.RawMessage) string {
		invited = string(vars)
		return `{"payload":{"results":[{"email":"lee@example.org","share":{"id":"s-2","email":"lee@example.org","permission":"read_write","status":"pending"}},
			{"email":"x","error":"not an e-mail address"}]}}`
	}
	r := f.berth("folder", "share", "data", "KIM@example.org", "lee@example.org", "x", "--permission", "read-write")
	if r.code != exitInvalid || !strings.Contains(r.errors, "x: not an e-mail address") || !strings.Contains(r.out, "lee@example.org") {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(changed, `"s-1"`) || strings.Contains(invited, "KIM") || !strings.Contains(invited, `"read_write"`) {
		t.Errorf("changed %s, invited %s", changed, invited)
	}
	if r := f.berth("folder", "share", "data", "x", "--permission", "all"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
	if r := f.berth("folder", "unshare", "data", "mo@example.org"); r.code != exitNotFound {
		t.Errorf("%+v", r)
	}
	if r := f.berth("folder", "leave", "data"); r.code != exitConflict {
		t.Errorf("%+v", r)
	}
}

func TestFolderInvitations(t *testing.T) {
	f := newFake(t)
	f.data("MyVfolderShares", `{"vfolderShares":{"edges":[
		{"node":{"id":"s-1","vfolderName":"data","inviterEmail":"kim@example.org"}},
		{"node":{"id":"s-2","vfolderName":"data","inviterEmail":"lee@example.org"}},
		{"node":{"id":"s-3","vfolderName":"runs","inviterEmail":null}}],"pageInfo":{}}}`)
	var accepted string
	f.answer["AcceptVfolderShare"] = func(vars json.RawMessage) string {
		accepted = string(vars)
		return `{"payload":{"share":{"id":"s"}}}`
	}
	r := f.berth("folder", "accept", "data")
	if r.code != exitConflict || !strings.Contains(r.errors, "s-2 of lee@example.org") {
		t.Errorf("%+v", r)
	}
	for ref, id := range map[string]string{"runs": "s-3", "s-2": "s-2"} {
		if r := f.berth("folder", "accept", ref); r.code != 0 || !strings.Contains(accepted, id) {
			t.Errorf("%s: %+v, %s", ref, r, accepted)
		}
	}
	if r := f.berth("folder", "accept", "nothing"); r.code != exitNotFound {
		t.Errorf("%+v", r)
	}
}
