package folder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestFolderMove(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"MoveFiles":         `{"payload":{"results":[{"path":"a","error":null},{"path":"b","error":"it exists"}]}}`,
		"CreateDirectories": `{"payload":{"results":[{"path":"z","error":null}]}}`,
		"CopyFiles":         `{"payload":{"vfolder":{"id":"f-2"},"task":{"id":"t-1","title":"copy","status":"DONE"}}}`,
		"DeleteFiles":       `{"payload":{"results":[{"path":"a","error":null}]}}`,
	})
	f.Answer["Vfolders"] = func(vars json.RawMessage) string {
		for name, volume := range map[string]string{"near": "v-1", "far": "v-2"} {
			if strings.Contains(string(vars), `"`+name+`"`) {
				return `{"vfolders":{"edges":[{"node":{"id":"f-` + name + `","name":"` + name + `","quotaScope":{"volume":{"id":"` + volume + `"}}}}],"pageInfo":{}}}`
			}
		}
		return oneFolder
	}
	for _, c := range []struct {
		args, op, wantInput string
		code                int
	}{
		{"folder mv data:a b/c", "MoveFiles", `"items":[{"from":"a","to":"b/c"}],"toVfolder":"f-1"}}`, cli.ExitGeneral},
		{"folder mv data:a data:b/ -f", "MoveFiles", `"items":[{"from":"a","to":"b/a"}],"toVfolder":"f-1","overwrite":true}}`, cli.ExitGeneral},
		{"folder mv data:a data:x/b near:", "MoveFiles", `"items":[{"from":"a","to":"a"},{"from":"x/b","to":"b"}],"toVfolder":"f-near"}}`, cli.ExitGeneral},
		{"folder mv data:a far:z", "CopyFiles", `"items":[{"from":"a","to":"z"}],"toVfolder":"f-far"}}`, 0},
		{"folder cp data:a data:b far:z", "CopyFiles", `"items":[{"from":"a","to":"z/a"},{"from":"b","to":"z/b"}]`, 0},
		{"folder cp -p data:a data:b far:z/y", "CreateDirectories", `"vfolder":"f-far","paths":["z/y"]`, 0},
		{"folder mv --parents data:a x/y/b", "CreateDirectories", `"vfolder":"f-1","paths":["x/y"]`, cli.ExitGeneral},
		{"folder mv data a", "", "", cli.ExitUsage},
		{"folder mv data:a near:b far:", "", "", cli.ExitUsage},
	} {
		r := f.Run(strings.Fields(c.args)...)
		if r.Code != c.code || !strings.Contains(said[c.op], c.wantInput) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
	if !strings.Contains(said["DeleteFiles"], `"paths":["a"]`) {
		t.Errorf("after it was copied, deleted %s", said["DeleteFiles"])
	}
	if r := f.Run("folder", "mv", "data:a", "data:b", "near:"); !strings.Contains(r.Errors, "b: it exists") || !strings.Contains(r.Errors, "1 path failed") || strings.TrimSpace(r.Out) != "a" {
		t.Errorf("%+v", r)
	}
	// Items are not copied if their directory could not be created.
	f.Data("CreateDirectories", `{"payload":{"results":[{"path":"z","error":"it is a file"}]}}`)
	delete(said, "CopyFiles")
	if r := f.Run("folder", "cp", "-p", "data:a", "far:z/"); r.Code == 0 || !strings.Contains(r.Errors, "it is a file") || said["CopyFiles"] != "" {
		t.Errorf("%+v, copied %s", r, said["CopyFiles"])
	}
	// Items that could not be copied are not deleted.
	f.Data("CopyFiles", `{"payload":{"vfolder":{"id":"f-2"},"task":{"id":"t-1","title":"copy","status":"FAILED","message":"no room"}}}`)
	delete(said, "DeleteFiles")
	if r := f.Run("folder", "mv", "data:a", "far:z"); r.Code == 0 || !strings.Contains(r.Errors, "no room") || said["DeleteFiles"] != "" {
		t.Errorf("%+v, deleted %s", r, said["DeleteFiles"])
	}
}
