package folder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

const (
	oneFolder = `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data","kind":"PROJECT","status":"READY","usageMode":"MODEL","permission":"READ_ONLY","fileCount":12,
		"project":{"id":"p-1","name":"thesis"},"quotaScope":{"id":"s-1","volume":{"id":"v-1","name":"fast"}}}}],"pageInfo":{}}}`
	oneProject = `{"projects":{"edges":[{"node":{"id":"p-1","name":"thesis"}}],"pageInfo":{}}}`
)

func TestFolderList(t *testing.T) {
	f := newServer(t)
	file := func(path string) string {
		return `{"name":"` + path[strings.LastIndex(path, "/")+1:] + `","path":"` + path + `","type":"FILE","size":1234567,"modifiedAt":"2026-03-04T11:00:00.5Z"}`
	}
	said := clitest.Record(f, map[string]string{
		"Vfolders": oneFolder, "Projects": oneProject,
		"Files":       `{"node":{"page":{"files":[` + file("runs/a.pt") + `],"endCursor":null}}}`,
		"SearchFiles": `{"node":{"page":{"files":[` + file("runs/7/check.pt") + `],"endCursor":null}}}`,
	})
	for _, c := range []struct {
		args      string
		code      int
		op        string
		wantInput string // variables that the server gets
		out       string
	}{
		{"folder ls", 0, "Vfolders", `"READY"`, "data"},
		{"folder ls -l", 0, "Vfolders", "", "read-only"},
		{"folder ls --mine", 0, "Vfolders", `"kind":"MINE"`, "data"},
		{"folder ls --shared --usage-mode model", 0, "Vfolders", `"usageMode":"MODEL"`, "data"},
		{"folder ls --project thesis", 0, "Vfolders", `"projectID":"p-1"`, "data"},
		{"folder ls --search dAt", 0, "Vfolders", `"nameContainsFold":"dAt"`, "data"},
		{"folder ls --mine --shared", cli.ExitUsage, "", "", ""},
		{"folder ls --usage-mode fast", cli.ExitUsage, "", "", ""},
		{"folder ls -R", cli.ExitUsage, "", "", ""},
		{"folder ls data:runs", 0, "Files", `"runs"`, "a.pt"},
		{"folder ls data:runs -R", 0, "Files", `"runs"`, "runs/a.pt"},
		{"folder ls data:runs -l", 0, "Files", `"runs"`, "1234567"},
		{"folder ls data:runs --search CHECK", 0, "SearchFiles", `"text":"CHECK"`, "runs/7/check.pt"},
		{"folder ls data --mine", cli.ExitUsage, "", "", ""},
		{"folder ls data -R --search x", cli.ExitUsage, "", "", ""},
	} {
		r := f.Run(strings.Fields(c.args)...)
		if r.Code != c.code || !strings.Contains(said[c.op], c.wantInput) || !strings.Contains(r.Out, c.out) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
	r := f.Run("folder", "ls", "data:runs", "-o", "json")
	var files []struct {
		Path string
		Size int64
	}
	if err := json.Unmarshal([]byte(r.Out), &files); err != nil || len(files) != 1 || files[0].Size != 1234567 {
		t.Errorf("%+v: %v", r, err)
	}
}
