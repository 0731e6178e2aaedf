package folder

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestFolderCreate(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Vfolders": oneFolder, "Projects": oneProject,
		"CreateVfolder": `{"payload":{"vfolder":{"id":"f-1","name":"new"}}}`,
		"CloneVfolder":  `{"payload":{"vfolder":{"id":"f-1","name":"new"},"task":{"id":"t-1","status":"DONE"}}}`,
	})
	for _, c := range []struct {
		args, op, wantInput string
		code                int
	}{
		{"folder create new --usage-mode data", "CreateVfolder", `{"name":"new","usageMode":"DATA"}`, 0},
		{"folder create new --project thesis --permission read-write-delete", "CreateVfolder", `{"name":"new","project":"p-1","permission":"READ_WRITE_DELETE"}`, 0},
		{"folder clone data new --project thesis --usage-mode model --permission read-only", "CloneVfolder",
			`{"id":"f-1","name":"new","project":"p-1","usageMode":"MODEL","permission":"READ_ONLY"}`, 0},
		{"folder create new --permission all", "", "", cli.ExitUsage},
	} {
		r := f.Run(strings.Fields(c.args)...)
		if r.Code != c.code || !strings.Contains(said[c.op], c.wantInput) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
}
