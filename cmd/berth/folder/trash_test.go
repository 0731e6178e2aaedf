package folder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestFolderTrash(t *testing.T) {
	f := newServer(t)
	f.Answer["Vfolders"] = func(vars json.RawMessage) string {
		if strings.Contains(string(vars), `"TRASH"`) {
			return `{"vfolders":{"edges":[{"node":{"id":"f-2","name":"old","status":"TRASH","deletedAt":"2026-03-04T11:00:00Z"}}],"pageInfo":{}}}`
		}
		return `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data"}}],"pageInfo":{}}}`
	}
	said := map[string]string{}
	note := func(op, answer string) {
		f.Answer[op] = func(vars json.RawMessage) string { said[op] = string(vars); return answer }
	}
	note("TrashVfolder", `{"payload":{"vfolder":{"id":"f-1"}}}`)
	note("RestoreVfolder", `{"payload":{"vfolder":{"id":"f-2","name":"new"}}}`)
	note("EmptyTrash", `{"payload":{"count":1}}`)
	note("DeleteVfolder", `{"payload":{"vfolder":{"id":"f-2"},"task":{"id":"t-1","title":"delete old","status":"DONE"}}}`)
	note("CloneVfolder", `{"payload":{"vfolder":{"id":"f-3"},"task":{"id":"t-2","title":"clone data","status":"FAILED","message":"no room"}}}`)
	for _, c := range []struct {
		args      string
		code      int
		op        string
		wantInput string // variables that the server gets
		out       string
	}{
		{"folder rm data", 0, "TrashVfolder", "f-1", "data"},
		{"folder trash ls", 0, "", "", "old"},
		{"folder trash restore old --name new", 0, "RestoreVfolder", `"new"`, "new"},
		{"folder trash empty", cli.ExitUsage, "EmptyTrash", "", ""},
		{"folder trash empty --yes", 0, "EmptyTrash", "{}", "1 folder"},
		{"folder delete old", cli.ExitUsage, "DeleteVfolder", "", ""},
		{"folder delete old --yes", 0, "DeleteVfolder", "f-2", "done"},
		{"folder clone data copy", cli.ExitConflict, "CloneVfolder", `"copy"`, "no room"},
	} {
		r := f.Run(strings.Fields(c.args)...)
		if r.Code != c.code || !strings.Contains(said[c.op], c.wantInput) || c.wantInput == "" && said[c.op] != "" || !strings.Contains(r.Out, c.out) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
}
