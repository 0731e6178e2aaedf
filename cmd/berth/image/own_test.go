package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

const groups = `{"resourceGroups":{"edges":[{"node":{"id":"01900000-0000-7000-8000-0000000000c1","name":"gpu"}}],"pageInfo":{}}}`

func TestRenameAndHistoryOfCommits(t *testing.T) {
	f := newServer(t)
	own := strings.TrimSuffix(oneImage, "}") + `,"sessionID":"01900000-0000-7000-8000-0000000000b1","versions":[` +
		`{"id":"v1","digest":"sha256:bb","sizeBytes":2048,"createdAt":"2026-03-04T11:59:00Z","sessionID":"01900000-0000-7000-8000-0000000000b1","base":"r.example/python:3","addedBytes":1024,"creator":{"id":"u","username":"ada"}}]}`
	said := clitest.Record(f, map[string]string{
		"ImageByName": `{"image":` + oneImage + `}`, "RenameImage": `{"renameImage":{"image":` + oneImage + `}}`, "ImageHistory": `{"image":` + own + `}`,
	})
	if r := f.Run("image", "rename", "tool:1", "better"); r.Code != 0 || !strings.Contains(said["RenameImage"], `"name":"better"}`) {
		t.Errorf("rename: %+v, %s", r, said["RenameImage"])
	}
	if r := f.Run("image", "rename", "tool:1", "better:2"); r.Code != 0 || !strings.Contains(said["RenameImage"], `"name":"better","tag":"2"}`) {
		t.Errorf("rename: %+v, %s", r, said["RenameImage"])
	}
	r := f.Run("image", "history", "tool:1")
	for _, want := range []string{"sha256:bb", "ada", "r.example/python:3", "1 KiB"} {
		if r.Code != 0 || !strings.Contains(r.Out, want) {
			t.Errorf("history without %s: %+v", want, r)
		}
	}
}

func TestPrepullAtATime(t *testing.T) {
	f := newServer(t)
	const task = `{"id":"01900000-0000-7000-8000-0000000000a1","kind":"image.prepull","title":"Pull image tool:1","status":"SCHEDULED","createdAt":"2026-03-04T11:59:00Z","retryAt":"2026-03-05T02:00:00Z"}`
	said := clitest.Record(f, map[string]string{
		"ImageByName": `{"image":` + oneImage + `}`, "ResourceGroupNames": groups, "ResourceGroups": groups, "ResourceGroupByName": `{"resourceGroup":{"id":"01900000-0000-7000-8000-0000000000c1","name":"gpu"}}`,
		"PrepullImage": `{"prepullImage":{"task":` + task + `}}`,
	})
	r := f.Run("image", "prepull", "tool:1", "--group", "01900000-0000-7000-8000-0000000000c1", "--window", "02:00-05:00", "--time-zone", "Europe/Berlin")
	if r.Code != 0 || !strings.Contains(said["PrepullImage"], `"window":{"start":"02:00","end":"05:00","timeZone":"Europe/Berlin"}`) || !strings.Contains(r.Out, "scheduled") {
		t.Errorf("a window: %+v, %s", r, said["PrepullImage"])
	}
	r = f.Run("image", "prepull", "tool:1", "--group", "01900000-0000-7000-8000-0000000000c1", "--at", "2026-03-05T02:00:00Z")
	if r.Code != 0 || !strings.Contains(said["PrepullImage"], `"startsAt":"2026-03-05T02:00:00Z"`) {
		t.Errorf("a time: %+v, %s", r, said["PrepullImage"])
	}
	for _, bad := range [][]string{{"--window", "02:00"}, {"--time-zone", "Europe/Berlin"}, {"--at", "soon"}} {
		if r := f.Run(append([]string{"image", "prepull", "tool:1", "--group", "gpu"}, bad...)...); r.Code == 0 {
			t.Errorf("%v: %+v", bad, r)
		}
	}
}

func TestMirrorsOfARegistry(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"RegistryByName": `{"registry":{"id":"01900000-0000-7000-8000-0000000000f1","name":"hub","host":"docker.io"}}`,
		"UpdateRegistry": `{"updateRegistry":{"registry":{"id":"01900000-0000-7000-8000-0000000000f1","name":"hub","host":"docker.io"}}}`,
	})
	logins := filepath.Join(t.TempDir(), "logins")
	if err := os.WriteFile(logins, []byte("mirror.example:5000 robot se-cret\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, sends string }{
		{"--mirrors mirror.example:5000,http://10.0.0.1:5000 --mirror-logins " + logins, `"mirrors":[{"host":"mirror.example:5000","username":"robot","password":"se-cret"},{"host":"10.0.0.1:5000","plainHttp":true}]`},
		{"--mirrors none", `"mirrors":[]`},
	} {
		r := f.Run(append([]string{"image", "registry", "update", "hub"}, strings.Fields(c.args)...)...)
		if r.Code != 0 || !strings.Contains(said["UpdateRegistry"], c.sends) {
			t.Errorf("%s: %+v, %s", c.args, r, said["UpdateRegistry"])
		}
	}
	if r := f.Run("image", "registry", "update", "hub", "--mirrors", "other.example", "--mirror-logins", logins); r.Code != cli.ExitInvalid || strings.Contains(r.Errors, "se-cret") {
		t.Errorf("a login of another host: %+v", r)
	}
	if r := f.Run("image", "registry", "update", "hub", "--mirror-logins", logins); r.Code != cli.ExitUsage {
		t.Errorf("logins without mirrors: %+v", r)
	}
}
