package folder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestFolderShare(t *testing.T) {
	f := newServer(t)
	f.Data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data"}}],"pageInfo":{}}}`)
	f.Data("VfolderShares", `{"node":{"shares":[{"id":"s-1","email":"kim@example.org","permission":"READ_ONLY","status":"ACCEPTED"}],"myShare":null}}`)
	var changed, invited string
	f.Answer["UpdateVfolderShare"] = func(vars json.RawMessage) string {
		changed = string(vars)
		return `{"payload":{"share":{"id":"s-1","email":"kim@example.org","permission":"READ_WRITE","status":"ACCEPTED"}}}`
	}
	f.Answer["ShareVfolder"] = func(vars json.RawMessage) string {
		invited = string(vars)
		return `{"payload":{"results":[{"email":"lee@example.org","share":{"id":"s-2","email":"lee@example.org","permission":"READ_WRITE","status":"PENDING"}},
			{"email":"x","error":"not an e-mail address"}]}}`
	}
	r := f.Run("folder", "share", "data", "KIM@example.org", "lee@example.org", "x", "--permission", "read-write")
	if r.Code != cli.ExitInvalid || !strings.Contains(r.Errors, "x: not an e-mail address") || !strings.Contains(r.Out, "lee@example.org") {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(changed, `"s-1"`) || strings.Contains(invited, "KIM") || !strings.Contains(invited, `"READ_WRITE"`) {
		t.Errorf("changed %s, invited %s", changed, invited)
	}
	if r := f.Run("folder", "share", "data", "x", "--permission", "all"); r.Code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
	if r := f.Run("folder", "unshare", "data", "mo@example.org"); r.Code != cli.ExitNotFound {
		t.Errorf("%+v", r)
	}
	if r := f.Run("folder", "leave", "data"); r.Code != cli.ExitConflict {
		t.Errorf("%+v", r)
	}
}

func TestFolderInvitations(t *testing.T) {
	f := newServer(t)
	f.Data("MyVfolderShares", `{"vfolderShares":{"edges":[
		{"node":{"id":"s-1","vfolderName":"data","inviterEmail":"kim@example.org"}},
		{"node":{"id":"s-2","vfolderName":"data","inviterEmail":"lee@example.org"}},
		{"node":{"id":"s-3","vfolderName":"runs","inviterEmail":null}}],"pageInfo":{}}}`)
	var accepted string
	f.Answer["AcceptVfolderShare"] = func(vars json.RawMessage) string {
		accepted = string(vars)
		return `{"payload":{"share":{"id":"s"}}}`
	}
	r := f.Run("folder", "accept", "data")
	if r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "s-2 of lee@example.org") {
		t.Errorf("%+v", r)
	}
	for ref, id := range map[string]string{"runs": "s-3", "s-2": "s-2"} {
		if r := f.Run("folder", "accept", ref); r.Code != 0 || !strings.Contains(accepted, id) {
			t.Errorf("%s: %+v, %s", ref, r, accepted)
		}
	}
	if r := f.Run("folder", "accept", "nothing"); r.Code != cli.ExitNotFound {
		t.Errorf("%+v", r)
	}
}
